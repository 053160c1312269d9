/** Whether another thread of a Lambda handler is worth its start: there is memory for it, and a processor. */
import { availableParallelism } from "node:os";
import { cpuLimit } from "../cpu-limit.ts";
import { memoryLeft } from "../memory-left.ts";
import { declaredLimit } from "./memory-limit.ts";
import { readFileSync } from "node:fs";

/** What a thread needs next to its heap: stack, event loop, what V8 compiles. */
const threadBytes = 8 * 2 ** 20;
/** For the kernel, and V8 beyond the heap. */
const reserveBytes = 12 * 2 ** 20;

/** Bytes of what one thread of this Function takes: as much as the first one. */
export function threadSize(): number {
  const { heapTotal, external } = process.memoryUsage();
  return heapTotal + external + threadBytes;
}

/** Bytes until a limit ends the process; infinite where none is known. */
export function roomLeft(): number {
  const limit = declaredLimit();
  const declared = limit === Infinity ? Infinity : limit - ownBytes() - reserveBytes;
  return Math.min(declared, memoryLeft());
}

/** Resident, and of no file: what the process would also need where nothing keeps its limit. */
function ownBytes(): number {
  try {
    const [, kilobytes] =
      /^RssAnon:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // Another system.
  }
  return process.memoryUsage.rss();
}

/** How much of the processors the process has used: threads help calls that wait, not those that compute. */
export class ProcessorDemand {
  #cpu = 0;
  #at = 0;

  /** Whether a processor is left since the look before, which has not been long ago; false at the first look. */
  leavesOne(): boolean {
    const { user, system } = process.cpuUsage();
    const [cpu, at] = [(user + system) / 1000, performance.now()];
    const [used, elapsed] = [cpu - this.#cpu, at - this.#at];
    [this.#cpu, this.#at] = [cpu, at];
    if (elapsed > 1000 || elapsed <= 0) return false;
    const cores = Math.min(availableParallelism(), cpuLimit() ?? Infinity);
    return used / elapsed < cores - Math.min(0.5, cores / 4);
  }
}
