/** How many files and connections a process has open, and how many it may have. */
import { readdirSync, readFileSync } from "node:fs";

export interface Descriptors {
  open: number;
  limit: number;
}

/** Of a process; undefined where it is unknown: of another user's, and on systems without `/proc`. */
export function descriptorsOf(pid: number | "self" = "self"): Descriptors | undefined {
  try {
    const open = readdirSync(`/proc/${pid}/fd`).length;
    return { open, limit: pid === "self" ? openFilesLimit() : limitOf(pid) };
  } catch (error) {
    if (pid !== "self" || (error as NodeJS.ErrnoException).code !== "EMFILE") return undefined;
    return { open: openFilesLimit(), limit: openFilesLimit() };
  }
}

let own: number | undefined;

/** Of this process, which raises it to the most that it may when it starts; infinite where it is unknown. */
export function openFilesLimit(): number {
  try {
    return (own ??= limitOf("self"));
  } catch {
    return Infinity;
  }
}

/**
 * How many connections a server may have: at most `most`, and at most a share of what this process may have open. Without a descriptor
 * left, nothing else of the process goes on: no other server, and no start of a program.
 */
export function connectionLimit(most: number, share: number): number {
  return Math.min(most, Math.floor(openFilesLimit() * share));
}

function limitOf(pid: number | "self"): number {
  const text = readFileSync(`/proc/${pid}/limits`, "latin1");
  const soft = /^Max open files\s+(\S+)/m.exec(text)?.[1] ?? "";
  return soft === "unlimited" ? Infinity : Number(soft) || Infinity;
}
