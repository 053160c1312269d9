import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Clock, sleep, systemClock } from "@spry/kube";

/** Of a process. */
export interface Heap {
  /** Milliseconds of processor time that the process has used so far. */
  cpuMs(): number;
  /** Bytes taken from the operating system. */
  bytes(): number;
  /** Collects all garbage and gives back what it can. */
  collect(): void;
}

const intervalMs = 2_000;
/** Of one processor. Timers, leases and status reports of an idle platform stay below it. */
const idleShare = 0.05;
const worthwhileBytes = 12 * 1024 * 1024;
/** By then what is kept for some minutes only has been let go, the API server's histories for one; that takes nothing, and is not seen. */
const againAfterMs = 370_000;

/**
 * Collects garbage when there is nothing else to do. V8 left to itself lets the heap of a process that has
 * become quiet stay as large as its work had made it; flags that keep it small all the time (`--optimize-for-size`)
 * double the price of every request. Some minutes later it does so once more. Runs until the signal is aborted.
 */
export async function collectWhenIdle(
  signal: AbortSignal,
  clock: Clock = systemClock,
  heap: Heap = ownHeap(),
): Promise<void> {
  let heapAfter = 0;
  let againAt = Infinity;
  while (!signal.aborted) {
    const before = heap.cpuMs();
    await sleep(clock, intervalMs, signal);
    const isIdle = heap.cpuMs() - before < intervalMs * idleShare;
    if (signal.aborted || !isIdle) continue;
    const hasGrown = heap.bytes() - heapAfter >= worthwhileBytes;
    if (!hasGrown && clock.elapsed() < againAt) continue;
    heap.collect();
    heapAfter = heap.bytes();
    againAt = hasGrown ? clock.elapsed() + againAfterMs : Infinity;
  }
}

function ownHeap(): Heap {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as (options: object) => void;
  return {
    cpuMs() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
    bytes: () => getHeapStatistics().total_heap_size,
    collect: () => gc({ type: "major", flavor: "last-resort" }),
  };
}
