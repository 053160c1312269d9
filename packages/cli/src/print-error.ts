/** An error and its way out, on standard error. */
import { columnsOf, wrapped } from "./terminal-width.ts";

const title = "error: ";

export function printError(message: string, wayOut?: string): void {
  const columns = columnsOf(process.stderr);
  console.error(wrapped(title + message, columns, title.length));
  if (!wayOut) return;
  const room = columns && columns - title.length;
  console.error(wrapped(wayOut, room).replaceAll(/^/gm, " ".repeat(title.length)));
}
