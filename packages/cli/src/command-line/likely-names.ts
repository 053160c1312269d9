/** Which command is suggested for one that does not exist. */
import { type Command } from "commander";
import { commandIn } from "./other-names.ts";

const opposites = /^(?:un|de|dis)-?(.+)$/;

/** Whether a command may be suggested for a word: one slip of the fingers away, two in a long word, and never its opposite. */
export function hasLikely(word: string, names: readonly string[]): boolean {
  const [, rest = ""] = opposites.exec(word) ?? [];
  if (names.includes(rest)) return false;
  return names.some((name) => distance(word, name) <= (word.length > 5 ? 2 : 1));
}

/** How many letters are to be put in, left out, replaced or exchanged with the next one. */
function distance(a: string, b: string): number {
  const rows: number[][] = [];
  for (let i = 0; i <= a.length; i++) {
    const row: number[] = (rows[i] = []);
    for (let j = 0; j <= b.length; j++) {
      const at = (x: number, y: number): number => rows[x]?.[y] ?? 0;
      if (i === 0 || j === 0) row[j] = i + j;
      else {
        const isSame = a[i - 1] === b[j - 1];
        const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
        row[j] = Math.min(
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          at(i - 1, j - 1) + (isSame ? 0 : 1),
          isSwapped ? at(i - 2, j - 2) + 1 : Infinity,
        );
      }
    }
  }
  return rows[a.length]?.[b.length] ?? 0;
}

/** Keeps an unlikely suggestion from the message about a command that does not exist. */
export function withoutUnlikely(args: readonly string[], program: Command): void {
  const names = program.commands.map((each) => each.name());
  const word = commandIn(args);
  // A long text is not a slip.
  if (!names.includes(word))
    program.showSuggestionAfterError(word.length < 30 && hasLikely(word, names));
}
