/** Finds what cannot be loaded before anything is built: syntax errors, with file, line and column. */
import { execFile } from "node:child_process";
import path from "node:path";
import { type Loader } from "esbuild";
import { runEsbuild } from "./esbuild-program.ts";
import { type SourceEntry } from "../project/files.ts";
import { shortened } from "../terminal-width.ts";
import { hasBuildScript, type Project } from "../project/project.ts";

/** One mistake. Line and column count from 1. */
export interface SyntaxProblem {
  file: string;
  line: number;
  column: number;
  message: string;
  /** The line itself. */
  text: string;
}

const pythonTimeoutMs = 20_000;
const outputLimit = 1024 * 1024;

/** The mistakes in the handler and all that it imports from the directory; none where that cannot be known. */
export async function syntaxProblems(
  project: Project,
  files: readonly SourceEntry[],
): Promise<SyntaxProblem[]> {
  if (project.runtime.language === "python") return inPython(project, files);
  // What images run is what the script makes.
  if (hasBuildScript(project.root)) return [];
  return inJavaScript(project);
}

/**
 * Code without mistakes needs the program's exit code only; what is wrong with other code the library says with its places. A
 * `handler.js` may be TypeScript: its mistakes are those of the language that it is valid in for longer.
 */
async function inJavaScript({ root, handler }: Project): Promise<SyntaxProblem[]> {
  const isCorrect = await runEsbuild(
    [
      path.join(root, handler),
      "--bundle",
      "--platform=node",
      "--format=esm",
      "--packages=external",
      "--log-level=silent",
      "--tsconfig-raw={}",
    ],
    { cwd: root },
  );
  if (isCorrect) return [];
  const { stop } = await import("esbuild");
  try {
    const problems = await problemsOf(root, handler);
    const [first] = problems;
    if (first?.file !== handler || !handler.endsWith(".js")) return problems;
    const typed = await problemsOf(root, handler, { ".js": "ts" });
    return typed.length === 0 || isLater(typed[0], first) ? typed : problems;
  } finally {
    await stop();
  }
}

async function problemsOf(
  root: string,
  handler: string,
  loader: Record<string, Loader> = {},
): Promise<SyntaxProblem[]> {
  const { build } = await import("esbuild");
  try {
    await build({
      entryPoints: [path.join(root, handler)],
      absWorkingDir: root,
      bundle: true,
      write: false,
      platform: "node",
      format: "esm",
      packages: "external",
      logLevel: "silent",
      tsconfigRaw: {},
      loader,
    });
    return [];
  } catch (error) {
    // Of other files than code it knows nothing.
    return compilerProblems(error).filter(
      ({ message }) => !message.startsWith("No loader is configured"),
    );
  }
}

/** In the same file. */
function isLater(problem: SyntaxProblem | undefined, other: SyntaxProblem): boolean {
  if (problem?.file !== other.file) return true;
  return (
    problem.line > other.line || (problem.line === other.line && problem.column > other.column)
  );
}

/** What esbuild says is wrong, with its places. */
export function compilerProblems(error: unknown): SyntaxProblem[] {
  const { errors = [] } = error as { errors?: Message[] };
  return errors.flatMap(({ text, location }) => {
    if (!location) return [];
    const { file, line, column, lineText } = location;
    return [{ file, line, column: column + 1, message: text, text: lineText }];
  });
}

interface Message {
  text: string;
  location: { file: string; line: number; column: number; lineText: string } | null;
}

/** Compiles each file in memory and prints the mistakes as JSON. */
const pythonProgram = `
import json, sys
found = []
for name in json.load(sys.stdin):
    try:
        with open(name, "rb") as file:
            compile(file.read(), name, "exec", dont_inherit=True)
    except SyntaxError as error:
        found.append([name, error.lineno or 1, error.offset or 1, error.msg, (error.text or "").rstrip("\\n")])
    except ValueError as error:
        found.append([name, 1, 1, str(error), ""])
json.dump(found[:20], sys.stdout)
`;

async function inPython(
  { root, runtime }: Project,
  files: readonly SourceEntry[],
): Promise<SyntaxProblem[]> {
  const names = files
    .filter((file) => !file.link && file.path.endsWith(".py"))
    .map((file) => file.path);
  // A large room, which other commands and languages start quicker without.
  const { findPython } = await import("@spry/machine");
  const python = await findPython(runtime.interpreter.replace("python@", ""));
  if (!python) return [];
  const output = await new Promise<string>((resolve) => {
    const options = { cwd: root, timeout: pythonTimeoutMs, maxBuffer: outputLimit };
    const args = ["-I", "-S", "-W", "ignore", "-c", pythonProgram];
    const child = execFile(python.executable, args, options, (error, stdout) =>
      resolve(error ? "[]" : stdout),
    );
    child.stdin?.on("error", () => {});
    child.stdin?.end(JSON.stringify(names));
  });
  const found = JSON.parse(output) as [string, number, number, string, string][];
  return found.map(([file, line, column, message, text]) => ({
    file,
    line,
    column,
    message,
    text,
  }));
}

/**
 * As compilers print them: the place, the reason, the line with a mark. The line is cut at `columns`, the width of
 * the terminal: if it wrapped, the mark would be at another place.
 */
export function formatProblem(
  { file, line, column, message, text }: SyntaxProblem,
  columns?: number,
): string {
  const place = `${file}:${line}:${column}: ${message}`;
  const room = columns === undefined ? undefined : columns - 2;
  if (text === "" || text.length > 160 || (room !== undefined && column > room)) return place;
  const indent = text.slice(0, column - 1).replaceAll(/[^\t]/g, " ");
  return `${place}\n  ${shortened(text, room)}\n  ${indent}^`;
}
