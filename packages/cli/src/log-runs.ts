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

/** The runs of containers whose output is shown as it comes. */
export class FollowedRuns {
  readonly #runs = new Map<string, number>();

  /**
   * Whether a Pod's container has begun a run that was not seen before; `after`: how the one before that ended, if it is known that one
   * was followed.
   */
  begun({ metadata: { uid = "" }, status }: Pod): { after?: string } | undefined {
    const [container] = status?.containerStatuses ?? [];
    const { restartCount = 0, state, lastState } = container ?? {};
    // While it waits to be restarted, what it wrote can be read.
    if (!state?.running && !state?.terminated && !lastState?.terminated) return undefined;
    const before = this.#runs.get(uid);
    if (before !== undefined && before >= restartCount) return undefined;
    this.#runs.set(uid, restartCount);
    if (before === undefined) return {};
    const { exitCode, reason } = lastState?.terminated ?? {};
    const why = reason === undefined || reason === "Error" ? "" : ` (${reason})`;
    const code = exitCode === undefined ? "" : ` with code ${exitCode}`;
    return { after: `ended${code}${why} and was started again` };
  }
}
