import { setTimeout as pause } from "node:timers/promises";
import { UserError } from "./user-error.ts";

const pauseMs = 250;

export interface Waiting {
  /** Asked when time is up: why the answer is still no. */
  why?: () => Promise<string | undefined>;
  /** Where the objects are that say more. */
  namespace?: string | undefined;
}

/** Asks until the answer is yes, a text being why not yet; what the question throws ends the waiting. */
export async function untilTrue(
  what: string,
  timeoutMs: number,
  question: () => Promise<boolean | string>,
  { why, namespace }: Waiting = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await question();
    if (answer === true) return;
    if (performance.now() > deadline) {
      // Whatever is wrong with the question, time is up.
      const reason = answer === false ? await why?.().catch(() => undefined) : answer;
      const because = reason === undefined ? "" : `: ${reason}`;
      const place = namespace === undefined ? "" : ` -n ${namespace}`;
      throw new UserError(
        `timed out after ${timeoutMs / 1000} s, waiting until ${what}${because}`,
        `\`kubectl get pods,events${place}\` shows more; --timeout waits longer`,
      );
    }
    await pause(pauseMs);
  }
}
