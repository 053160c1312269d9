/** Distinguishes a process from a later one that was given the same pid. */
import { readFileSync } from "node:fs";

export interface ProcessIdentity {
  pid: number;
  /** Clock ticks from boot to the process's start (proc(5), stat field 22); absent where there is no /proc. */
  startTime?: string;
}

export function identify(pid: number): ProcessIdentity {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? { pid } : { pid, startTime };
}

export function isAlive(identity: ProcessIdentity): boolean {
  try {
    process.kill(identity.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  const startTime = startTimeOf(identity.pid);
  return identity.startTime === undefined || startTime === identity.startTime;
}

/** Signals the process if it is still the same one; says whether it was. */
export function signal(identity: ProcessIdentity, name: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, name);
    return true;
  } catch {
    return false;
  }
}

function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command, in parentheses, may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z") return "zombie";
    return fields[19];
  } catch {
    return undefined;
  }
}
