import { setTimeout as pause } from "node:timers/promises";
import { UserError } from "./user-error.ts";

const pauseMs = 250;

/** Asks until the answer is yes, a text being why not yet; what the question throws ends the waiting. */
export async function untilTrue(
  what: string,
  timeoutMs: number,
  question: () => Promise<boolean | string>,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await question();
    if (answer === true) return;
    if (performance.now() > deadline) {
      const because = answer === false ? "" : `: ${answer}`;
      throw new UserError(
        `timed out after ${timeoutMs / 1000} s, waiting until ${what}${because}`,
        "kubectl get pods,events shows more; --timeout waits longer",
      );
    }
    await pause(pauseMs);
  }
}
