import { setTimeout as pause } from "node:timers/promises";
import { UserError } from "./user-error.ts";

const pauseMs = 250;

/** Asks until the answer is yes; what the question throws ends the waiting. */
export async function untilTrue(
  what: string,
  timeoutMs: number,
  question: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await question())) {
    if (performance.now() > deadline) {
      throw new UserError(
        `waiting until ${what}: not within ${timeoutMs / 1000} s`,
        "kubectl get pods,events tells more; --timeout waits longer",
      );
    }
    await pause(pauseMs);
  }
}
