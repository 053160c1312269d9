/** Why code could not be loaded: what the runtime wrote, with the place in the user's file first. */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";

export interface Failure {
  /** One line: `handler.ts:4: SyntaxError: Unexpected token ';'`. */
  summary: string;
  /** All of it, with paths relative to the directory. */
  details: string;
  /** What to do about it, where that is known. */
  wayOut?: string;
}

/** Where a Function's code is in its image; in the process sandbox below a directory of the node agent's. */
const directoryInImage = String.raw`[^\s"'()]*/usr/src/app/function`;

/** Files in an image by their paths in the Function's directory. */
export const withoutDirectory = (text: string): string =>
  text.replaceAll(new RegExp(`(?:file://)?${directoryInImage}/`, "g"), "");

/** Reads a runtime's output. `root`: the directory with the code; left out for that of an image. */
export function failureIn(output: string, root?: string): Failure {
  const text = stripVTControlCharacters(output).trim();
  const escaped = root?.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`) ?? directoryInImage;
  const places = [
    ...text.matchAll(new RegExp(`${escaped}/([^\\n:"()]+):(\\d+)`, "g")),
    ...[
      ...text.matchAll(new RegExp(`File "${escaped}/([^\\n"]+)", line (\\d+)`, "g")),
    ].toReversed(),
  ].filter(([, file = ""]) => !file.startsWith("node_modules/"));
  const [place = root === undefined ? undefined : importIn(text, root)] = places;
  const wayOut = wayOutOf(text);
  const message = messageIn(text).replaceAll(new RegExp(`(?:file://)?${escaped}/`, "g"), "");
  return {
    summary: place ? `${place[1]}:${place[2]}: ${message}` : message,
    details: text
      .replaceAll(new RegExp(`(?:file://)?${escaped}/`, "g"), "")
      .replace(/\n+Node\.js v\d+[\d.]*$/, ""),
    ...(wayOut !== undefined && { wayOut }),
  };
}

/** Node.js names the file that imports what does not exist, and not the line. */
function importIn(
  text: string,
  root: string,
): [all: string, file: string, line: string] | undefined {
  const [, missing = "", from] =
    /\bCannot find (?:module|package) '([^']+)' imported from '?([^\s']+)/.exec(text) ?? [];
  if (from === undefined || !from.startsWith(root + path.sep) || !existsSync(from))
    return undefined;
  const ends = [`${path.basename(missing)}"`, `${path.basename(missing)}'`];
  const lines = readFileSync(from, "utf8").split("\n");
  const at = lines.findIndex((line) => ends.some((each) => line.includes(each)));
  return at < 0 ? undefined : ["", path.relative(root, from), `${at + 1}`];
}

/** The name of a missing package. */
function wayOutOf(text: string): string | undefined {
  const [, inNode] = /\bCannot find package '((?:@[\w.-]+\/)?[\w.-]+)'/.exec(text) ?? [];
  if (inNode !== undefined) return `npm install ${inNode} adds it to package.json`;
  const [, inPython] = /\bModuleNotFoundError: No module named '(\w+)/.exec(text) ?? [];
  if (inPython === undefined) return undefined;
  return `if ${inPython} belongs to a package, add the package to requirements.txt`;
}

function messageIn(text: string): string {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !/^(?:at |Node\.js v\d)/.test(line));
  const named = /^(?:Uncaught )?(?:[A-Z]\w*)?(?:Error|Exception|Interrupt)\b.*$/;
  const loading = lines.map(
    (line) => /^loading \S+\.\w+: (\w*(?:Error|Exception)\b.*)$/.exec(line)?.[1],
  );
  const reason = loading.findLast((each) => each !== undefined);
  if (reason) return reason.replace(/ \([^()]+, line \d+\)$/, "");
  // The last of a chain is the outermost in Python, and the only one in Node.js.
  const error = lines.findLast((line) => named.test(line));
  if (error) return error.replace(/ \[ERR_\w+\]/, "").replace(/ \{$/, "");
  return (
    lines.find((line) => line.startsWith("loading the Function: ")) ??
    lines.at(-1) ??
    "the process ended without a message"
  );
}
