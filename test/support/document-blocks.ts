/** The code blocks of a document, with what comments before them say about them. */
export interface DocumentBlock {
  /** `sh`, `ts`, `yaml`, …; `text` is what the block before prints. */
  language: string;
  text: string;
  line: number;
  /** The file that the reader is to write: `<!-- file: shop/handler.ts -->`. */
  file: string | undefined;
  /** A command that keeps running, in a terminal of its own: `<!-- background -->`. */
  isBackground: boolean;
  /** Needs something that the test does not have: `<!-- not run: needs a cluster -->`. */
  isNotRun: boolean;
}

export function blocksOf(markdown: string): DocumentBlock[] {
  const pattern = /^(?:<!-- (.+?) -->\n+)?```(\w+)\n([^]*?)^```$/gm;
  return [...markdown.matchAll(pattern)].map(
    ({ 1: note = "", 2: language = "", 3: text = "", index }) => ({
      language,
      text,
      line: markdown.slice(0, index).split("\n").length,
      file: /^file: (\S+)$/.exec(note)?.[1],
      isBackground: note === "background",
      isNotRun: note.startsWith("not run:"),
    }),
  );
}
