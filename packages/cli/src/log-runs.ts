import { type Pod } from "@spry/kube";

/** As many as a node of one machine keeps. */
const keptRuns = 3;

/** A run of a container that has ended. */
export interface EndedRun {
  /** From 1 on. */
  run: number;
  /** How many runs before the previous one; only a node of one machine knows more than that. */
  earlier: number;
}

/** The runs of a Function's container before the present one whose output may be kept, the oldest first: a kubelet keeps one. */
export function endedRuns({ status }: Pod): EndedRun[] {
  const [container] = status?.containerStatuses ?? [];
  const { restartCount = 0, state, containerID = "" } = container ?? {};
  // While it waits to be restarted, the last run has ended, too.
  const last = state?.waiting ? restartCount + 1 : restartCount;
  const kept = containerID.startsWith("spry://") ? Math.min(keptRuns, last) : 1;
  return Array.from({ length: Math.max(1, kept) }, (_, index) => {
    const earlier = Math.max(1, kept) - 1 - index;
    return { run: last - earlier, earlier };
  });
}
