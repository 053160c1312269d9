/** Ctrl-C and the other requests to end: a command says what becomes of its work, and ends with the signal's exit code. */
import { constants } from "node:os";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
export type EndSignal = (typeof signals)[number];

/** A supervisor signals all processes of a group, and npm among them passes the signal on: it arrives twice. */
const sameRequestMs = 500;

/** As shells report a process that a signal has ended: 130 for Ctrl-C. */
export const exitCodeOf = (signal: EndSignal): number => 128 + constants.signals[signal];

/** Resolves at the first of these signals; another one, later, ends the process at once. */
export function untilInterrupted(): Promise<EndSignal> {
  return new Promise((resolve) => {
    onInterrupt(resolve);
  });
}

/**
 * Calls `end` at the first of these signals, and ends this process when that is done; listeners for `exit` remove what it has
 * on disk. Returns what restores the default, which is to end at once.
 */
export function endOnInterrupt(end: () => void | Promise<void>): () => void {
  return onInterrupt((signal) => {
    void Promise.resolve(end()).finally(() => process.exit(exitCodeOf(signal)));
  });
}

function onInterrupt(first: (signal: EndSignal) => void): () => void {
  let since: number | undefined;
  const listener = (signal: NodeJS.Signals) => {
    const end = signal as EndSignal;
    if (since === undefined) {
      since = performance.now();
      first(end);
    } else if (performance.now() - since > sameRequestMs) process.exit(exitCodeOf(end));
  };
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}
