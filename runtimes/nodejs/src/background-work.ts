import { logError } from "./log.ts";

const running = new Set<Promise<unknown>>();

/** Work that continues after the response; a process that stops waits for it. */
export function runInBackground(work: unknown): void {
  const promise = Promise.resolve(work)
    .catch((error: unknown) => logError("work in the background failed", error))
    .finally(() => running.delete(promise));
  running.add(promise);
}

const lastWork: (() => Promise<void>)[] = [];

/** For what is to be done when all else has been, one after the other. */
export function atStop(work: () => Promise<void>): void {
  lastWork.push(work);
}

export async function backgroundWork(): Promise<void> {
  while (running.size > 0) await Promise.all(running);
  for (const work of lastWork)
    await work().catch((error: unknown) => logError("stopping the Function", error));
}
