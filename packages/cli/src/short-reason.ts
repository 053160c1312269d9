/** The first line of a condition's message, with the cause where it has one. */
import { failureIn } from "./load-failure.ts";

export function shortReason(message: string): string {
  const [, words] = /^[^]*?\bexit code \d+\): ([^]+)$/.exec(message) ?? [];
  if (words !== undefined) return failureIn(words).summary;
  return message.split("\n")[0] ?? "";
}
