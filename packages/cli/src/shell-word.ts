/** A text as one word of a POSIX shell's command line, quoted only if it has to be (POSIX.1-2024, 2.2.2). */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
