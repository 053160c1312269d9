import {
  formatLabelSelector,
  type LabelSelector,
  requirementsOf,
  type UnknownObject,
} from "@spry/kube";
import { badRequest } from "../errors.ts";
import { FieldErrors } from "../field-errors.ts";
import { type ScalePaths } from "../resources/custom-version.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { compilePath } from "../table/json-path.ts";

const builtinPaths: ScalePaths = {
  specReplicasPath: ".spec.replicas",
  statusReplicasPath: ".status.replicas",
};

/** The object as an `autoscaling/v1 Scale`. */
export function scaleOf(type: ResourceType, object: UnknownObject): UnknownObject {
  const paths = pathsOf(type);
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector = selectorText(type, object);
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: {
      ...(name !== undefined && { name }),
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    spec: { replicas: numberAt(object, paths.specReplicasPath) },
    status: {
      replicas: numberAt(object, paths.statusReplicasPath),
      ...(selector && { selector }),
    },
  };
}

/** The object with the replicas that a Scale asks for. */
export function scaled(
  type: ResourceType,
  object: UnknownObject,
  scale: UnknownObject,
): UnknownObject {
  const replicas = (scale.spec as { replicas?: unknown } | undefined)?.replicas ?? 0;
  if ((scale.kind ?? "Scale") !== "Scale")
    throw badRequest(`the body is a ${scale.kind}, not a Scale`);
  const errors = new FieldErrors();
  if (!Number.isSafeInteger(replicas) || (replicas as number) < 0) {
    const detail = type.custom
      ? "should be a non-negative integer"
      : "must be greater than or equal to 0";
    errors.invalid("spec.replicas", replicas, detail);
  }
  errors.throwIfAny("Scale", "autoscaling", object.metadata.name ?? "");
  const version = scale.metadata?.resourceVersion;
  if (version) object.metadata.resourceVersion = version;
  const steps = pathsOf(type).specReplicasPath.split(".").slice(1);
  let place = object as Record<string, unknown>;
  for (const step of steps.slice(0, -1)) place = (place[step] ??= {}) as Record<string, unknown>;
  place[steps.at(-1) ?? ""] = replicas;
  return object;
}

function pathsOf(type: ResourceType): ScalePaths {
  return type.custom?.scale ?? builtinPaths;
}

function numberAt(object: UnknownObject, path: string): number {
  const [value] = compilePath(path)(object);
  return typeof value === "number" ? value : 0;
}

function selectorText(type: ResourceType, object: UnknownObject): string | undefined {
  if (type.custom) {
    const path = type.custom.scale?.labelSelectorPath;
    const [value] = path ? compilePath(path)(object) : [];
    return typeof value === "string" ? value : undefined;
  }
  const selector = (object.spec as { selector?: LabelSelector } | undefined)?.selector;
  return selector && formatLabelSelector(requirementsOf(selector));
}
