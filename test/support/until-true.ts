import { setTimeout as pause } from "node:timers/promises";

/** Asks until it is so; throws with what was waited for when that takes too long. */
export async function untilTrue(
  what: string,
  ask: () => Promise<boolean>,
  timeoutMs: number,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`after ${timeoutMs} ms still not: ${what}`);
    await pause(250);
  }
}
