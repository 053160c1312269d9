/**
 * `console` of a Function, whose stacks are its author's: without the frames of the runtime, at the places that the author knows.
 * Everything else is written as Node.js writes it.
 */
import { format } from "node:util";
import { readableStacks } from "./stack.ts";

const methods = ["error", "warn", "log", "info", "debug"] as const;

/** From now on. Not for who debugs: a debugger shows the values themselves. */
export function writeReadableStacks(): void {
  for (const method of methods) {
    const write = console[method];
    console[method] = (...args: unknown[]) => {
      if (args.some(mayHaveStack)) write(readableStacks(format(...args)));
      else write(...args);
    };
  }
  console.trace = (...args: unknown[]) => console.error(traceOf(console.trace, args));
}

/** What `console.trace` writes; `caller`: the function whose callers are shown. */
export function traceOf(caller: (...args: unknown[]) => void, args: unknown[]): string {
  const trace = { name: "Trace", message: format(...args), stack: "" };
  Error.captureStackTrace(trace, caller);
  return trace.stack;
}

function mayHaveStack(value: unknown): boolean {
  return typeof value === "string"
    ? value.includes("\n    at ")
    : typeof value === "object" && value !== null;
}
