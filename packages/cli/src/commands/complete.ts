import { type Command } from "commander";
import { type Candidate, candidatesAt, isFileAt } from "../completion/candidates.ts";
import { positionIn } from "../completion/position.ts";

/** The exit code that has the shell complete files. */
export const filesExitCode = 3;

/**
 * Prints what the last word may become, one candidate a line, for the scripts of `spry completion`. What cannot be found, or not
 * soon enough, is missing: an error would appear in the midst of what is being typed.
 */
export async function complete(
  words: readonly string[],
  { descriptions = false }: { descriptions?: boolean },
  program: Command,
): Promise<never> {
  const position = positionIn(program, words.length > 0 ? words : [""]);
  const candidates = await candidatesAt(position).catch((): Candidate[] => []);
  const lines = candidates.map(({ word, description }) =>
    descriptions && description ? `${word}\t${description}\n` : `${word}\n`,
  );
  await new Promise<void>((done) => process.stdout.write(lines.join(""), () => done()));
  process.exit(candidates.length === 0 && isFileAt(position) ? filesExitCode : 0);
}
