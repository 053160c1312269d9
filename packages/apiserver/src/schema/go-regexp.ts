/**
 * Go's regular expressions (https://github.com/google/re2/wiki/Syntax): the patterns of schemas and of CEL are written
 * for them. They match in time linear in the text, so that no pattern can hold up the server.
 */
import { createRequire } from "node:module";
import type * as Re2 from "re2js";

/** Its time to load and its memory are paid by the first pattern, not by every start of the server. */
let library: typeof Re2 | undefined;
const load = createRequire(import.meta.url);

/** By their patterns, the oldest first. */
const known = new Map<string, Re2.RE2JS | SyntaxError>();
/**
 * Of all programs together. A common pattern has 20 to 60 instructions; what a long text leaves behind in a program
 * was measured at up to 7 kB each, so this is 70 MB if an attacker chooses the patterns.
 */
const maxInstructions = 10_000;
let instructions = 0;

/**
 * The pattern, compiled once: `test` looks for it anywhere in a text, `matchAll` for all of its places. Throws a
 * `SyntaxError` for what Go does not take either, look-around and references back among it.
 */
export function goRegExp(pattern: string): Pick<Re2.RE2JS, "test" | "matchAll"> {
  let found = known.get(pattern);
  if (!found) {
    found = compiled(pattern);
    known.set(pattern, found);
    instructions += sizeOf(found);
    forgetOldest();
  }
  if (found instanceof SyntaxError) throw found;
  return found;
}

function forgetOldest(): void {
  for (const [pattern, program] of known) {
    if (instructions <= maxInstructions) return;
    known.delete(pattern);
    instructions -= sizeOf(program);
  }
}

/** What cannot be compiled is kept for its message, which is longer than most programs. */
const sizeOf = (program: Re2.RE2JS | SyntaxError): number =>
  program instanceof SyntaxError ? 10 : program.programSize();

function compiled(pattern: string): Re2.RE2JS | SyntaxError {
  library ??= load("re2js") as typeof Re2;
  try {
    return library.RE2JS.compile(pattern);
  } catch (error) {
    if (error instanceof library.RE2JSException) return new SyntaxError(error.message);
    throw error;
  }
}
