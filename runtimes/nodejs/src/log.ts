import { inspect } from "node:util";
import { describeError } from "./stack.ts";

/** `id`: of the request that the line is about, where that is not the one that is being handled. */
type Line = (level: "info" | "error", text: string, id?: string) => string;

let line: Line = (_level, text) => `${text}\n`;

/** From now on lines of the log look like this. */
export function formatLog(made: Line): void {
  line = made;
}

/** To stderr with stack and causes, as needed for debugging the Function. */
export function logError(what: string, error: unknown): void {
  process.stderr.write(line("error", `${what}: ${describe(error)}`));
}

function describe(error: unknown): string {
  try {
    return error instanceof Error ? describeError(error) : `threw ${inspect(error)}`;
  } catch {
    // A client waits for its response: an error that cannot be printed must not prevent it.
    return "threw a value that cannot be printed";
  }
}

/** To stderr: a line without an error. */
export function logLine(text: string, id?: string): void {
  process.stderr.write(line("error", text, id));
}

/** To stdout. */
export function logInfo(text: string): void {
  process.stdout.write(line("info", text));
}
