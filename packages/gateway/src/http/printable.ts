/**
 * A text for a terminal: what a Function's code has written into an error could otherwise move the cursor, colour, or answer for
 * the user (ECMA-48).
 */
export function printable(text: string): string {
  return text.replaceAll(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu, "\uFFFD");
}
