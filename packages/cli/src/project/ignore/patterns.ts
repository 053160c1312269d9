/** The lines of a `.gitignore`, as Git reads them (gitignore(5), and dir.c where that is silent). */
import { wildmatch } from "./wildmatch.ts";

/** One character for each byte. */
export const bytesOf = (text: string): string => Buffer.from(text).toString("latin1");

interface Pattern {
  text: string;
  /** How much of it is to be taken literally, from its beginning. */
  literal: number;
  isNegative: boolean;
  foldersOnly: boolean;
  /** Compared with a name, not with a path. */
  isName: boolean;
  /** A star, and then nothing special. */
  isEnd: boolean;
}

/** The rules of one file. */
export class Patterns {
  readonly #patterns: readonly Pattern[];

  /** `content`: of the file, as it is. */
  constructor(content: Buffer) {
    const text = content.toString("latin1").replace(/^\u00EF\u00BB\u00BF/, "");
    this.#patterns = text.split("\n").flatMap((line) => {
      const pattern = line.startsWith("#") ? "" : withoutSpaces(line.replace(/\r$/, ""));
      return pattern === "" ? [] : [patternOf(pattern)];
    });
  }

  /** What the last rule for a path says; undefined where none is for it. `file`: below the file's folder, in bytes. */
  decide(file: string, isFolder: boolean): "ignored" | "sent" | undefined {
    const name = file.slice(file.lastIndexOf("/") + 1);
    const last = this.#patterns.findLast(
      (each) =>
        (isFolder || !each.foldersOnly) &&
        (each.isName ? hasName(each, name) : hasPath(each, file)),
    );
    if (!last) return undefined;
    return last.isNegative ? "sent" : "ignored";
  }
}

/** Without spaces at its end; a backslash keeps the one after it. */
function withoutSpaces(line: string): string {
  let end = 0;
  for (let at = 0; at < line.length; at++) {
    if (line.charAt(at) === "\\") at++;
    else if (line.charAt(at) === " ") continue;
    end = at + 1;
  }
  return line.slice(0, end);
}

function patternOf(line: string): Pattern {
  const isNegative = line.startsWith("!");
  let text = isNegative ? line.slice(1) : line;
  const foldersOnly = text.endsWith("/");
  if (foldersOnly) text = text.slice(0, -1);
  const special = text.search(/[*?[\\]/);
  return {
    text,
    literal: special < 0 ? text.length : special,
    isNegative,
    foldersOnly,
    isName: !text.includes("/"),
    isEnd: /^\*[^*?[\\]*$/.test(text),
  };
}

function hasName({ text, literal, isEnd }: Pattern, name: string): boolean {
  if (literal === text.length) return name === text;
  return isEnd ? name.endsWith(text.slice(1)) : wildmatch(text, name, false);
}

function hasPath({ text, literal }: Pattern, file: string): boolean {
  const from = text.startsWith("/") ? 1 : 0;
  const begin = text.slice(from, literal);
  if (!file.startsWith(begin)) return false;
  // Git compares what comes after the literal part by itself.
  return wildmatch(text.slice(Math.max(literal, from)), file.slice(begin.length), true);
}
