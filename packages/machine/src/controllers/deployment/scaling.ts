import { type Deployment, type ReplicaSet, resources } from "@spry/kube";
import { type ControllerContext } from "../context.ts";
import { scaleAnnotationsOf } from "./revisions.ts";
import { replicasOf, type Scale } from "./rollout.ts";

/** Gives sets the sizes of a step, and records an Event for each that changes. */
export async function applyScale(
  { client, events }: ControllerContext,
  deployment: Deployment,
  scale: Scale,
): Promise<void> {
  const annotations = scaleAnnotationsOf(deployment);
  for (const [set, replicas] of scale) {
    const before = replicasOf(set);
    if (replicas === before && hasAnnotations(set, annotations)) continue;
    const patch = {
      // From a cache that is behind, a step could be taken twice.
      metadata: { resourceVersion: set.metadata.resourceVersion, annotations },
      spec: { replicas },
    };
    await client.patch(resources.replicaSets, target(set), patch);
    if (replicas === before) continue;
    const direction = replicas > before ? "up" : "down";
    const message = `Scaled ${direction} replica set ${set.metadata.name} from ${before} to ${replicas}`;
    events.record(resources.deployments, deployment, {
      type: "Normal",
      reason: "ScalingReplicaSet",
      message,
    });
  }
}

function hasAnnotations(set: ReplicaSet, annotations: Record<string, string>): boolean {
  return Object.entries(annotations).every(
    ([name, value]) => set.metadata.annotations?.[name] === value,
  );
}

export function target({ metadata }: Deployment | ReplicaSet) {
  return { namespace: metadata.namespace, name: metadata.name ?? "" };
}
