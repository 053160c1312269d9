/** Lines that fit into a terminal. Files and pipes get them as they are. */

/** Columns of the terminal that a stream is; undefined for anything else. */
export function columnsOf(stream: NodeJS.WriteStream): number | undefined {
  return stream.isTTY ? (stream.columns ?? 80) : undefined;
}

/**
 * Breaks each line that is longer than `columns` between two words, rather after a semicolon, and indents what follows. Lines that
 * begin with white space are of code or a table, and stay as they are (but for items of a list, `  - `), as do words that are longer (addresses, paths).
 */
export function wrapped(text: string, columns: number | undefined, indent = 0): string {
  if (columns === undefined) return text;
  return text
    .split("\n")
    .map((line) => {
      const [, item] = /^(\s+- )\S/.exec(line) ?? [];
      if (item === undefined && /^\s/.test(line)) return line;
      return brokenLine(line, columns, " ".repeat(item?.length ?? indent));
    })
    .join("\n");
}

function brokenLine(line: string, columns: number, indent: string): string {
  const lines = [];
  let rest = line;
  while (rest.length > columns) {
    const at = breakIn(rest, columns, indent.length);
    if (at === undefined) break;
    lines.push(rest.slice(0, at).trimEnd());
    rest = indent + rest.slice(at).trimStart();
  }
  return [...lines, rest].join("\n");
}

/** Where a line is to be broken; undefined where it cannot be. */
function breakIn(line: string, columns: number, indent: number): number | undefined {
  const clause = line.lastIndexOf("; ", columns - 1) + 1;
  if (clause > columns / 3) return clause;
  const space = line.lastIndexOf(" ", columns);
  if (space > indent) return space;
  const next = line.indexOf(" ", Math.max(columns, indent + 1));
  return next < 0 ? undefined : next;
}

/** A text of at most `columns` characters. */
export function shortened(text: string, columns: number | undefined): string {
  if (columns === undefined || text.length <= columns) return text;
  return `${text.slice(0, Math.max(columns - 1, 0))}…`;
}

/** `sha256:` with twelve of its digits: enough to distinguish images. */
export const withShortDigests = (text: string): string =>
  text.replaceAll(/\bsha256:([0-9a-f]{12})[0-9a-f]{52}\b/g, "sha256:$1");
