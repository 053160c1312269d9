/**
 * The one place that sends signals; `tools/signals.test.ts` keeps it the only one. A number of 0 is the sender's own group, -1 every
 * process of the user, and 1 the machine's first process: a number that was never a process's, or was read from a damaged file, reaches
 * none of them from here.
 */
import { readStat } from "./process-stat.ts";

/** Numbers of processes are 32 bits, and Linux gives none above 2^22. */
const largest = 2 ** 31 - 1;

/** Whether this can be the number of a process that is another one's, and not the first of the machine. */
export function isOthersPid(pid: unknown): pid is number {
  return (
    Number.isInteger(pid) &&
    (pid as number) > 1 &&
    pid !== process.pid &&
    (pid as number) <= largest
  );
}

/**
 * Signals one process; says whether it was sent. One that has ended already, or whose number another user's process has by now, is not
 * an error. Throws for a signal that does not exist.
 */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  return isOthersPid(pid) && send(pid, signal);
}

/** The same for a whole process group. */
export function signalGroup(group: number, signal: NodeJS.Signals): boolean {
  return isOthersPid(group) && group !== ownGroup() && send(-group, signal);
}

/** Whether there is a process of this number, of whichever user: without a descriptor, and without saying which one it is. */
export function processExists(pid: number): boolean {
  if (!Number.isInteger(pid) || pid < 1 || pid > largest) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Ends this process as a signal would: its parent sees which one. */
export function signalItself(signal: NodeJS.Signals): void {
  process.kill(process.pid, signal);
}

function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
    return false;
  }
}

let group: number | undefined;

/** Where it cannot be read, that of the parent is the likeliest: a shell without job control. */
function ownGroup(): number {
  return (group ??= readStat(process.pid)?.group) ?? process.ppid;
}
