import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { atSource, textAtSource } from "./source-map.ts";

/** And what has started it. */
const runtimeFiles = [__filename, `${__dirname}/server.cjs`];
/** Also what Node.js writes for frames that a cause has, too. */
const omitted = /^\s+\.\.\. \d+ lines matching cause stack trace/;
const frame = /^\s+(?:at |\.\.\. \d+ lines matching cause stack trace)/m;
/** That many characters of the line that an error came from are shown. */
const frameWidth = 160;

/** An error with its causes, at the places that its author knows, without the frames of the runtime. */
export function describeError(error: Error): string {
  return readableStacks(inspect(error));
}

/** A text with the stacks of errors in it, as `describeError` has them; any other text as it is. */
export function readableStacks(text: string): string {
  if (!frame.test(text)) return text;
  const lines: string[] = [];
  let frames: string[] = [];
  for (const line of atSource(text).split("\n")) {
    if (frame.test(line)) {
      frames.push(line);
      continue;
    }
    lines.push(...authorsFrames(frames), line);
    frames = [];
  }
  return [...lines, ...authorsFrames(frames)].join("\n");
}

/** Of one error. What is below the last frame of the author's has called it: Node.js and the runtime. */
function authorsFrames(frames: readonly string[]): string[] {
  const others = frames.filter((line) => !isFrameOf(line, runtimeFiles));
  const last = others.findLastIndex((line) => !isFrameOf(line, ["node:"]) && !omitted.test(line));
  // An error that only Node.js knows is one of its own: of a connection, for example.
  const shown = last < 0 ? others : others.slice(0, last + 1);
  const end = shown.length - 1;
  // What follows are the error's properties.
  if (frames.at(-1)?.endsWith(" {") && end >= 0 && !shown[end]?.endsWith(" {")) shown[end] += " {";
  return shown;
}

/**
 * Why the Function's code cannot be loaded: the line that it failed at and the stack, without the frames
 * of Node.js' loader. Undefined when only Node.js knows the line: of a syntax error in an ES module, whose
 * stack is then its author's alone.
 */
export function describeLoadError(error: Error): string | undefined {
  const { name, code } = error as NodeJS.ErrnoException;
  cutStack(error);
  const { stack = String(error) } = error;
  // It begins with the place and the line already.
  if (/^(?:file:\/\/)?\/[^\n]*:\d+\n/.test(stack)) return stack;
  if (name === "SyntaxError") return undefined;
  const text = atSource(isNotFound(code) ? stack : inspect(error));
  return `${codeFrame(text)}${text}`;
}

/** Its message has the list of files, and the properties have it once more. */
function isNotFound(code: string | undefined): boolean {
  return code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND";
}

function cutStack(error: unknown, depth = 0): void {
  if (!(error instanceof Error) || depth > 8) return;
  const lines = (error.stack ?? "").split("\n");
  const own = lines.filter((line) => !isFrameOf(line, [...runtimeFiles, "node:"]));
  try {
    error.stack = own.join("\n");
  } catch {
    // It is frozen: then all of it is shown.
  }
  cutStack(error.cause, depth + 1);
}

function isFrameOf(line: string, files: readonly string[]): boolean {
  if (!/^\s+at /.test(line)) return false;
  return files.some((file) => line.includes(`(${file}`) || line.includes(` ${file}`));
}

/** The first frame's line with a mark below its column; empty when it cannot be read. */
function codeFrame(stack: string): string {
  const [, file, line = "", column = ""] =
    /^\s+at (?:.*[( ])?(?:file:\/\/)?(\/[^\n():]+):(\d+):(\d+)\)?(?: \{)?$/m.exec(stack) ?? [];
  if (file === undefined) return "";
  try {
    const all = textAtSource(file) ?? readFileSync(file, "utf8");
    const text = all.split("\n")[Number(line) - 1] ?? "";
    if (text.length > frameWidth) return "";
    const indent = text.slice(0, Number(column) - 1).replaceAll(/[^\t]/g, " ");
    return `${file}:${line}\n${text}\n${indent}^\n\n`;
  } catch {
    return "";
  }
}
