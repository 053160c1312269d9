/** The log files of a platform, `spry.log` and `gateway.log`: each with its three predecessors takes at most about 64 MiB. */
import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from "node:fs";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { type Logger, messageOf } from "@spry/kube";

/** A file that has grown beyond this becomes `<file>.1`, which becomes `<file>.2`, and so on. */
const maxBytes = 16 * 1024 * 1024;
const predecessors = 3;
const lookMs = 10_000;

export const logNames = ["spry.log", "gateway.log"] as const;

/** Rotates the files in this directory, now and whenever they have grown, until the signal is aborted. */
export async function keepLogsSmall(dir: string, log: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const name of logNames) {
      try {
        rotate(path.join(dir, name));
      } catch (error) {
        log.warn({ file: name, error: messageOf(error) }, "a log file could not be rotated");
      }
    }
    await setTimeout(lookMs, undefined, { ref: false, signal }).catch(() => {});
  }
}

/**
 * Its writers have it open, perhaps in another process, and append to it: what it holds is copied, and the same file begins anew. On a
 * disk that is full the copy is left out.
 */
export function rotate(file: string, most = maxBytes): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= most) return;
  for (let age = predecessors; age > 1; age--)
    if (statSync(`${file}.${age - 1}`, { throwIfNoEntry: false }))
      renameSync(`${file}.${age - 1}`, `${file}.${age}`);
  try {
    copyFileSync(file, `${file}.1`);
  } catch {
    rmSync(`${file}.1`, { force: true });
  }
  truncateSync(file);
}
