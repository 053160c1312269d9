/** Asks for confirmation before something that cannot be undone. */
import { createInterface } from "node:readline/promises";
import { exitCodeOf } from "./interruption.ts";
import { columnsOf, wrapped } from "./terminal-width.ts";
import { UserError } from "./user-error.ts";

/** The answer has its place in the same line. */
const prompt = (question: string): string =>
  `${wrapped(`${question} [y/N]`, (columnsOf(process.stderr) ?? 80) - "yes ".length)} `;

/**
 * Returns once the user has agreed, in advance by `--yes` (`isAgreed`) or on the terminal.
 * @throws UserError when the user declines, or when neither `--yes` nor a terminal is present
 */
export async function confirm(question: string, isAgreed: boolean | undefined): Promise<void> {
  if (isAgreed) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UserError(`this needs a confirmation: ${question}`, "add --yes to give it");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  lines.once("SIGINT", () => {
    lines.close();
    console.error("\ninterrupted: nothing was changed");
    process.exit(exitCodeOf("SIGINT"));
  });
  try {
    const answer = await lines.question(prompt(question));
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new UserError("nothing was changed");
  } finally {
    lines.close();
  }
}
