import { type ChildProcess } from "node:child_process";
import { once } from "node:events";

/** Whether it has ended, or never began. Its exit code alone does not tell: that stays null when a signal has ended it. */
export function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

/** Sends a signal to what still runs. Resolves when it has ended, with its exit code: null when a signal ended it. */
export async function endChild(
  child: ChildProcess,
  signal: NodeJS.Signals = "SIGKILL",
): Promise<number | null> {
  if (!hasEnded(child)) {
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }
  return child.exitCode;
}
