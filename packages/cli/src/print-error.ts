/** An error and its way out, on standard error. */
import { withShownCommands } from "./shown-command.ts";
import { columnsOf, wrapped } from "./terminal-width.ts";

const title = "error: ";

export function printError(message: string, wayOut?: string): void {
  const columns = columnsOf(process.stderr);
  console.error(wrapped(title + withShownCommands(message), columns, title.length));
  if (!wayOut) return;
  const room = columns && columns - title.length;
  console.error(
    wrapped(withShownCommands(wayOut), room).replaceAll(/^/gm, " ".repeat(title.length)),
  );
}
