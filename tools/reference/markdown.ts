/** Markdown by hand: lines of at most 120 characters, tables whose cells cannot break them. */

const width = 118;

/** A sentence or more, wrapped. */
export function paragraph(text: string, indent = ""): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.trim().split(/\s+/)) {
    if (line && indent.length + line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  return [...lines, line].map((each, index) => (index === 0 ? each : indent + each)).join("\n");
}

/** A definition: what it is called, and what it does, as an item of a list. */
export const item = (term: string, text: string, depth = 0): string =>
  `${"  ".repeat(depth)}- ${paragraph(`${term}: ${text}`, `${"  ".repeat(depth)}  `)}`;

export const code = (text: string): string => `\`${text}\``;

/** Says where a page comes from, for those who would change it. */
export const generatedFrom = (what: string): string =>
  `<!-- Made by \`npm run reference\` from ${what}: change that instead. -->`;
