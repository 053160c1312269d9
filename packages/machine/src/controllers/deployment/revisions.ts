import { type Deployment, deepEqual, type PodTemplateSpec, type ReplicaSet } from "@spry/kube";
import { rollingLimits } from "./rolling-limits.ts";

export const hashLabel = "pod-template-hash";
export const revisionAnnotation = "deployment.kubernetes.io/revision";
const historyAnnotation = "deployment.kubernetes.io/revision-history";
export const desiredAnnotation = "deployment.kubernetes.io/desired-replicas";
export const maxAnnotation = "deployment.kubernetes.io/max-replicas";

/** Annotations that belong to the Deployment itself and are not handed down. */
const ownAnnotations = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  revisionAnnotation,
  historyAnnotation,
  desiredAnnotation,
  maxAnnotation,
  "deprecated.deployment.rollback.to",
]);

export function revisionOf(object: Deployment | ReplicaSet): number {
  return Number(object.metadata.annotations?.[revisionAnnotation] ?? 0) || 0;
}

export function createdAt(set: ReplicaSet): number {
  return Date.parse(set.metadata.creationTimestamp ?? "") || 0;
}

/** The oldest set with the Deployment's present template: a rollback finds the set it had before. */
export function currentSetOf(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): ReplicaSet | undefined {
  const wanted = withoutHash(deployment.spec?.template);
  return [...sets]
    .sort((a, b) => createdAt(a) - createdAt(b))
    .find((set) => deepEqual(withoutHash(set.spec?.template), wanted));
}

function withoutHash(template: PodTemplateSpec | undefined): unknown {
  if (!template) return template;
  const { [hashLabel]: _, ...labels } = template.metadata?.labels ?? {};
  const { creationTimestamp: __, ...metadata } = (template.metadata ?? {}) as Record<
    string,
    unknown
  >;
  return { ...template, metadata: { ...metadata, labels } };
}

/** The counts that a set was last scaled by: how large the Deployment was to be, and how large it might be. */
export function scaleAnnotationsOf(deployment: Deployment): Record<string, string> {
  const replicas = deployment.spec?.replicas ?? 1;
  const { maxSurge } = rollingLimits(deployment);
  return { [desiredAnnotation]: String(replicas), [maxAnnotation]: String(replicas + maxSurge) };
}

/** They are written together with the scaling itself, and with nothing else. */
export function withoutScale(annotations: Record<string, string>): Record<string, string> {
  const { [desiredAnnotation]: _, [maxAnnotation]: __, ...rest } = annotations;
  return rest;
}

/** The annotations of a set that carries the Deployment's template now, as revision `revision`. */
export function annotationsOf(
  deployment: Deployment,
  set: ReplicaSet | undefined,
  revision: number,
): Record<string, string> {
  const annotations = { ...set?.metadata.annotations };
  for (const [name, value] of Object.entries(deployment.metadata.annotations ?? {}))
    if (!ownAnnotations.has(name)) annotations[name] = value;
  const previous = annotations[revisionAnnotation];
  if (previous !== undefined && previous !== String(revision)) {
    const history = annotations[historyAnnotation]?.split(",") ?? [];
    // Bounded, or a Deployment rolled back and forth would grow its annotation for ever.
    annotations[historyAnnotation] = [...history, previous].slice(-50).join(",");
  }
  annotations[revisionAnnotation] = String(revision);
  return { ...annotations, ...scaleAnnotationsOf(deployment) };
}
