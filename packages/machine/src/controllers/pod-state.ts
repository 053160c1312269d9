import { getCondition, isConditionTrue, type Pod } from "@spry/kube";

/** What controllers ask about a Pod, in the words of `pkg/api/v1/pod` and `pkg/controller`. */

export function isPodTerminal(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

export function isPodTerminating(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}

/** Neither finished nor on its way out: what a ReplicaSet counts. */
export function isPodActive(pod: Pod): boolean {
  return !isPodTerminal(pod) && !isPodTerminating(pod);
}

export function isPodReady(pod: Pod): boolean {
  return isConditionTrue(pod.status?.conditions as never, "Ready");
}

/** Milliseconds since the epoch; NaN when the Pod is not ready. */
export function readySince(pod: Pod): number {
  if (!isPodReady(pod)) return Number.NaN;
  return Date.parse(
    getCondition(pod.status?.conditions as never, "Ready")?.lastTransitionTime ?? "",
  );
}

/** How long until a Pod that is ready counts as available: 0 now, undefined while it is not ready. */
export function msUntilAvailable(
  pod: Pod,
  minReadySeconds: number,
  now: number,
): number | undefined {
  if (!isPodReady(pod)) return undefined;
  if (minReadySeconds === 0) return 0;
  return Math.max(0, readySince(pod) + minReadySeconds * 1000 - now);
}

export function restartsOf(pod: Pod): number {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  return [...initContainerStatuses, ...containerStatuses].reduce(
    (sum, status) => sum + status.restartCount,
    0,
  );
}
