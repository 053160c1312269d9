/**
 * A text from outside as one line for a terminal: control characters, which could move the cursor, colour or answer for the user
 * (ECMA-48), line breaks, and marks that change the direction of writing, are each replaced by U+FFFD.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "\uFFFD");
}

/** The same for a text of several lines. */
export function printableLines(text: string): string {
  return text.split(/\r?\n/).map(printable).join("\n");
}

/** Colours and attributes (SGR), which change nothing but how the text after them looks. */
const escape = "\u001B";
const colours = new RegExp(String.raw`(${escape}\[[\d;:]{0,40}m|\t)`);

/** The same for a line that a Function has written: with its colours and tabs. */
export function printableOutput(line: string): string {
  return line
    .split(colours)
    .map((part) => (colours.test(part) ? part : printable(part)))
    .join("");
}
