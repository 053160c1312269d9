import {
  formatLabelSelector,
  type LabelSelector,
  requirementsOf,
  type UnknownObject,
} from "@spry/kube";
import { badRequest, internalError } from "../errors.ts";
import { copyOf } from "../json-copy.ts";
import { FieldErrors } from "../field-errors.ts";
import { type ScalePaths } from "../resources/custom-version.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { compilePath } from "../table/json-path.ts";
import { isNumber } from "../json.ts";

const builtinPaths: ScalePaths = {
  specReplicasPath: ".spec.replicas",
  statusReplicasPath: ".status.replicas",
};

/** The object as an `autoscaling/v1 Scale`, to be shown. Throws a `StatusError` 500 where a custom resource has no replicas. */
export function shownScale(type: ResourceType, object: UnknownObject): UnknownObject {
  const path = pathsOf(type).specReplicasPath;
  // A kind of a definition has no default that would stand for the field.
  if (type.custom && compilePath(path)(object).length === 0) {
    throw internalError(`the spec replicas field ${JSON.stringify(path)} does not exist`);
  }
  return scaleOf(type, object);
}

/** The same, to be changed. */
export function scaleOf(type: ResourceType, object: UnknownObject): UnknownObject {
  const paths = pathsOf(type);
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector = selectorText(type, object);
  const replicas = numberAt(object, paths.specReplicasPath);
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
    spec: { ...(replicas && { replicas }) },
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
  // Of a kind of a definition the object itself is looked at, like after any other write.
  if (!type.custom && (replicas as number) < 0)
    errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0");
  errors.throwIfAny("Scale", "autoscaling", object.metadata.name ?? "");
  const version = scale.metadata?.resourceVersion;
  if (version) object.metadata.resourceVersion = version;
  const steps = pathsOf(type).specReplicasPath.split(".").slice(1);
  let place = object as Record<string, unknown>;
  for (const step of steps.slice(0, -1)) place = (place[step] ??= {}) as Record<string, unknown>;
  place[steps.at(-1) ?? ""] = replicas;
  return object;
}

/** What a Scale sets, as a part of the object that it is about. */
export function scalePart(type: ResourceType, scale: UnknownObject): UnknownObject {
  const { metadata } = scale;
  const object = { apiVersion: groupVersionOf(type), kind: type.kind, metadata: { ...metadata } };
  return (scale.spec as object | undefined) ? scaled(type, object, scale) : object;
}

/** The part of the object that a Scale shows: it leaves out replicas of zero, which therefore have no owner. */
export function asToldByScale(type: ResourceType, object: UnknownObject): UnknownObject {
  const steps = pathsOf(type).specReplicasPath.split(".").slice(1);
  const copy = copyOf(object);
  let place = copy as Record<string, unknown> | undefined;
  for (const step of steps.slice(0, -1)) place = place?.[step] as typeof place;
  const last = steps.at(-1) ?? "";
  if (place?.[last] === 0) delete place[last];
  return copy;
}

function pathsOf(type: ResourceType): ScalePaths {
  return type.custom?.scale ?? builtinPaths;
}

function numberAt(object: UnknownObject, path: string): number {
  const [value] = compilePath(path)(object);
  return isNumber(value) ? Number(value) : 0;
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
