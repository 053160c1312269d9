import { setTimeout as pause } from "node:timers/promises";

/** Asks every 100 ms until the answer is yes. An error of the question ends the waiting. */
export async function until(
  what: string,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
  question: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await question())) {
    if (performance.now() > deadline) {
      throw new Error(`waiting until ${what}: not within ${timeoutMs / 1000} s`);
    }
    await pause(100, undefined, { signal });
  }
}
