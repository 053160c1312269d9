/** The first line of a condition's message, with the cause where it has one. */
import { failureIn } from "./load-failure.ts";

export function shortReason(message: string): string {
  const memory = memoryProblem(message);
  if (memory) return memory.summary;
  const [, words] = /^[^]*?\bexit code \d+\): ([^]+)$/.exec(message) ?? [];
  if (words !== undefined) return failureIn(words).summary;
  return message.split("\n")[0] ?? "";
}

/** Of a Function whose process had too little memory (controller room, `podProblem`). */
export function memoryProblem(
  message: string,
): { summary: string; wayOut: string; details: string } | undefined {
  const found = /^[^\n]*?\((out of memory[^:)\n]*): ([^)\n]+)\)(?:: ([^]+))?$/.exec(message);
  if (!found) return undefined;
  const [, summary = "", wayOut = "", output] = found;
  return { summary, wayOut, details: output ? `\n${output.replaceAll(/^(?=.)/gm, "  ")}` : "" };
}
