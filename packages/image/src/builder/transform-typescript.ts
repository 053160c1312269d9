/** TypeScript that Node.js refuses, because more has to be done to it than taking its types out: enums, namespaces, parameter properties. */
import { stripTypeScriptTypes } from "node:module";
import { posix } from "node:path";
import { type SourceFile } from "./function-source.ts";
import { withoutUnusedImports } from "./unused-imports.ts";
import { UserError } from "./user-error.ts";

/** Of the files that look as if it were needed: how many, of which size each, and how long all of them may take. */
const limits = { files: 1000, fileSize: 1_000_000, timeMs: 60_000 };

/** An inline source is called `handler.js` in either language. */
const isCode = /(?<!\.d)\.[cm]?ts$|\.[cm]?js$/;
const isTyped = /ts$/;
const enumStatement = /^\s*(?:export\s+)?(?:const\s+)?enum\s+[\w$]+\s*\{/m;
/** Runs at a desk. */
const isTest = /(?:^|\/)(?:tests?|__tests__)\/|\.(?:test|spec)\.[cm]?[jt]s$/;
/** Whether it means so or is in a comment: the compiler knows, and takes longer to load than this takes. */
const mayNeedIt = [
  /\b(?:enum|namespace|module)\s+[\w$.]+\s*\{/,
  // A property that is a parameter of the constructor.
  /\bconstructor\s*\([^)]*\b(?:public|private|protected|readonly|override)\s/,
  /\bimport\s+(?:type\s+)?[\w$]+\s*=|\bexport\s*=/,
];

/**
 * The same files, with JavaScript in place of TypeScript that Node.js cannot run. Each keeps its name, as other files import it by
 * that, and has a source map with the original text. `directory`: of the Function, in the files' paths. Throws a `UserError` for a
 * handler with a syntax error; what is wrong with another file is reported, and matters only when it is loaded.
 */
export function transformTypeScript(
  files: readonly SourceFile[],
  directory: string,
  report: (line: string) => void,
): readonly SourceFile[] {
  const candidates = files.filter(isCandidate);
  if (candidates.length === 0) return files;
  if (candidates.length > limits.files)
    throw new UserError(`compiling TypeScript: more than ${limits.files} files need it`);
  const end = performance.now() + limits.timeMs;
  const made = new Map<SourceFile, SourceFile>();
  for (const file of candidates) {
    if (performance.now() > end)
      throw new UserError(
        `compiling TypeScript exceeded its time limit (${limits.timeMs / 1000} s)`,
      );
    const name = posix.relative(directory, file.path);
    const code = transformed(file, (problem) => {
      const text = `${name}${problem}`;
      if (/^handler\.\w+$/.test(name)) throw new UserError(text);
      report(`${text}; the file is left as it is`);
    });
    if (code !== undefined) made.set(file, { ...file, content: Buffer.from(code) });
  }
  return files.map((file) => made.get(file) ?? file);
}

function isCandidate({ path, content, link }: SourceFile): boolean {
  // What a link leads to is a file of the source.
  if (link !== undefined) return false;
  if (!isCode.test(path) || isTest.test(path) || content.length > limits.fileSize) return false;
  // What is looked for is ASCII; this way of reading it costs least.
  const text = content.toString("latin1");
  return mayNeedIt.some((pattern) => pattern.test(text));
}

/** Undefined for a file that Node.js takes as it is, and for one that is not TypeScript at all. */
function transformed(
  { path, content }: SourceFile,
  onProblem: (problem: string) => void,
): string | undefined {
  const text = content.toString("utf8");
  const sourceUrl = posix.basename(path);
  const plain = attempt(text, () => stripTypeScriptTypes(text, { sourceUrl }));
  if ("code" in plain) return undefined;
  if (!plain.isUnsupported) {
    // Whether another script is meant to be TypeScript is the runtime's to find out.
    if (isTyped.test(path) || enumStatement.test(text)) onProblem(plain.problem);
    return undefined;
  }
  const result = attempt(text, () =>
    stripTypeScriptTypes(text, { mode: "transform", sourceMap: true, sourceUrl }),
  );
  if ("code" in result) return withOriginal(result.code, text);
  onProblem(result.problem);
  return undefined;
}

/** `problem`: `:line:column: what is wrong`. */
type Attempt = { code: string } | { isUnsupported: boolean; problem: string };

function attempt(text: string, run: () => string): Attempt {
  const emitWarning = process.emitWarning.bind(process);
  // Node.js calls this experimental; which Node.js builds is the platform's choice.
  process.emitWarning = () => {};
  try {
    return { code: run() };
  } catch (error) {
    const { code, message, stack = "" } = error as NodeJS.ErrnoException;
    const isUnsupported = code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX";
    if (!isUnsupported && code !== "ERR_INVALID_TYPESCRIPT_SYNTAX") throw error;
    return { isUnsupported, problem: `${placeIn(text, stack)}: ${message}` };
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** The stack begins with `file:line`, lines of the code whose tabs are four blanks, and a mark below the place. */
function placeIn(text: string, stack: string): string {
  const [head = "", ...lines] = stack.split("\n");
  const line = /:(\d+)$/.exec(head)?.[1];
  if (line === undefined) return "";
  const mark = lines.find((each) => /^\s*\^+$/.test(each));
  if (mark === undefined) return `:${line}`;
  let width = mark.indexOf("^");
  let column = 1;
  for (const character of text.split("\n")[Number(line) - 1] ?? "") {
    if (width <= 0) break;
    width -= character === "\t" ? 4 : 1;
    column += character.length;
  }
  return `:${line}:${column}`;
}

const mapComment = /\n\n\/\/# sourceMappingURL=data:application\/json;base64,(\S+)\s*$/;

/** The image has the original nowhere else. */
function withOriginal(output: string, original: string): string {
  const [comment = "", encoded = ""] = mapComment.exec(output) ?? [];
  const code = withoutUnusedImports(output.slice(0, output.length - comment.length));
  const map = JSON.parse(Buffer.from(encoded, "base64").toString()) as Record<string, unknown>;
  const text = JSON.stringify({ ...map, sourcesContent: [original] });
  const data = Buffer.from(text).toString("base64");
  return `${code}\n\n//# sourceMappingURL=data:application/json;base64,${data}\n`;
}
