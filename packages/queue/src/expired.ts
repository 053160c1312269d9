import { type Verdict } from "./queue.ts";

/** Of a message that has waited for as long as it may; `failures`: its tries that counted. */
export function expired(failures: number, afterMs: number, reason = "Expired"): Verdict {
  const message = `not delivered within ${afterMs / 1_000} s`;
  return failures > 0
    ? { reason, message }
    : { reason: "NeverReached", message: `${message}: no try has reached its receiver` };
}
