import { type Pod } from "@spry/kube";
import { isPodReady, readySince, restartsOf } from "./pod-state.ts";

const costAnnotation = "controller.kubernetes.io/pod-deletion-cost";
const phaseRank: Record<string, number> = { Pending: 0, Unknown: 1, Running: 2 };

/**
 * The Pods that are missed least, in Kubernetes' order (`ActivePodsWithRanks`): unassigned before
 * assigned, not running before running, not ready before ready, cheap before dear, ready for a short
 * time before long, often restarted before seldom, young before old.
 */
export function podsToDelete(pods: readonly Pod[], count: number, now: number): Pod[] {
  const rankOf = (pod: Pod): number[] => [
    pod.spec?.nodeName ? 1 : 0,
    phaseRank[pod.status?.phase ?? "Pending"] ?? 1,
    isPodReady(pod) ? 1 : 0,
    Number(pod.metadata.annotations?.[costAnnotation] ?? 0) || 0,
    // Ages are compared by magnitude, so that equally old Pods do not always go in the same order.
    isPodReady(pod) ? Math.floor(Math.log2(Math.max(1, now - readySince(pod)))) : 0,
    -restartsOf(pod),
    -Date.parse(pod.metadata.creationTimestamp ?? "") || 0,
  ];
  return pods
    .map((pod) => ({ pod, rank: rankOf(pod) }))
    .sort((a, b) => {
      const at = a.rank.findIndex((value, i) => value !== b.rank[i]);
      return at < 0 ? 0 : (a.rank[at] ?? 0) - (b.rank[at] ?? 0);
    })
    .slice(0, count)
    .map(({ pod }) => pod);
}
