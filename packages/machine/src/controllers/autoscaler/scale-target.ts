import {
  type HorizontalPodAutoscaler,
  type KubeObject,
  messageOf,
  type Resource,
  resources,
} from "@spry/kube";
import { discoverKind, findKind } from "../api-resources.ts";
import { type ControllerContext } from "../context.ts";

/** `autoscaling/v1 Scale`: how anything that has replicas is scaled. */
interface Scale extends KubeObject {
  spec?: { replicas?: number };
  status?: { replicas?: number; selector?: string };
}

export interface ScaleTarget {
  replicas: number;
  /** As its status counts them. */
  counted: number;
  /** Selector of its Pods; empty when the scale subresource has none. */
  selector: string;
  resize(replicas: number): Promise<void>;
}

/** The target of an autoscaler. Throws when there is none of that kind and name. */
export async function readScaleTarget(
  { client }: ControllerContext,
  { metadata, spec }: HorizontalPodAutoscaler,
  signal: AbortSignal,
): Promise<ScaleTarget> {
  const { namespace } = metadata;
  const { apiVersion = "", kind = "", name = "" } = spec?.scaleTargetRef ?? {};
  const known = findKind(Object.values(resources) as Resource[], apiVersion, kind);
  const resource = known ?? (await discoverKind(client, apiVersion, kind, signal));
  if (!resource) {
    const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
    throw new Error(
      `no matches for kind ${JSON.stringify(kind)} in group ${JSON.stringify(group)}`,
    );
  }
  const typed = resource as Resource<Scale>;
  const scale = await client.get(typed, { namespace, name, subresource: "scale" });
  return {
    replicas: scale.spec?.replicas ?? 0,
    counted: scale.status?.replicas ?? 0,
    selector: scale.status?.selector ?? "",
    async resize(replicas) {
      await client.patch(
        typed,
        { namespace, name },
        { spec: { replicas } },
        { subresource: "scale", signal },
      );
    },
  };
}

/** What is wrong with a target, as the condition `AbleToScale` reports it. */
export function unreadableMessage(error: unknown): string {
  return `the HPA controller was unable to get the target's current scale: ${messageOf(error)}`;
}
