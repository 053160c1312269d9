/** Line ends of texts that a browser's fields show: they know `\n` only, and what is typed in them must not change the others. */

/** With `\n` only, as editors have it. */
export const withPlainEnds = (text: string): string => text.replace(/\r\n?/g, "\n");

/**
 * What was typed, with the line ends of the text before: lines that are as they were keep theirs, the changed ones between them get
 * the most frequent one.
 */
export function withEndsOf(before: string, typed: string): string {
  if (!before.includes("\r")) return typed;
  const old = [...before.matchAll(/([^\r\n]*)(\r\n|\r|\n|$)/g)]
    .map(([, text = "", end = ""]) => ({ text, end }))
    .slice(0, withPlainEnds(before).split("\n").length);
  const lines = withPlainEnds(typed).split("\n");
  const least = Math.min(old.length, lines.length);
  let head = 0;
  while (head < least && old[head]?.text === lines[head]) head++;
  let tail = 0;
  while (tail < least - head && old.at(-1 - tail)?.text === lines.at(-1 - tail)) tail++;
  const usual = usualEnd(before);
  return lines
    .map((text, at) => {
      if (at === lines.length - 1) return text;
      const fromEnd = lines.length - 1 - at;
      const known =
        at < head ? old[at] : fromEnd < tail ? old[old.length - 1 - fromEnd] : undefined;
      return text + (known?.end || usual);
    })
    .join("");
}

function usualEnd(text: string): string {
  const ends = ["\r\n", "\n", "\r"] as const;
  const count = (end: string) =>
    text.match(/\r\n|\r|\n/g)?.filter((each) => each === end).length ?? 0;
  return ends.toSorted((a, b) => count(b) - count(a))[0] ?? "\n";
}
