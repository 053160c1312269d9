/**
 * An error and its way out, on standard error, always in one layout: the sentence behind `error: `, its details two columns in, and
 * the way out below the sentence.
 */
import { withShownCommands } from "./shown-command.ts";
import { columnsOf, wrapped } from "./terminal-width.ts";

const title = "error: ";

export function printError(message: string, wayOut?: string): void {
  for (const line of errorLines(message, wayOut, columnsOf(process.stderr))) console.error(line);
}

/** `columns`: of the terminal, if it is one. */
export function errorLines(message: string, wayOut?: string, columns?: number): string[] {
  const [sentence = "", ...details] = withShownCommands(message.trimEnd()).split("\n");
  // Other programs' words have an order of indentation of their own, which stays.
  const isBare = details.some((line) => /^\S/.test(line));
  const indented = isBare
    ? wrapped(details.join("\n"), columns && columns - 2).replaceAll(/^(?=.)/gm, "  ")
    : details.join("\n");
  const room = columns && columns - title.length;
  const advice = wayOut ? wrapped(withShownCommands(wayOut), room).split("\n") : [];
  return [
    ...wrapped(title + sentence, columns, title.length).split("\n"),
    ...(details.length > 0 ? indented.split("\n") : []),
    ...advice.map((line) => " ".repeat(title.length) + line),
  ];
}
