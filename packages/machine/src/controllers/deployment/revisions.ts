import { type Deployment, deepEqual, type PodTemplateSpec, type ReplicaSet } from "@spry/kube";

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

/** The annotations of a set that carries the Deployment's template now, as revision `revision`. */
export function annotationsOf(
  deployment: Deployment,
  set: ReplicaSet | undefined,
  revision: number,
  maxReplicas: number,
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
  annotations[desiredAnnotation] = String(deployment.spec?.replicas ?? 1);
  annotations[maxAnnotation] = String(maxReplicas);
  return annotations;
}
