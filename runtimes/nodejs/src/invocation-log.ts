/**
 * What a Function logs, line by line with its level and the invocation that it belongs to, when
 * `FUNC_LOG_FORMAT` asks for it. Following the invocation costs each request some microseconds.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { format, inspect, type InspectOptions } from "node:util";
import { type FunctionRequest } from "./function-request.ts";
import { formatLog } from "./log.ts";
import { requestIdOf } from "./request-log.ts";
import { traceOf } from "./console.ts";
import { readableStacks } from "./stack.ts";

const levels = {
  trace: "debug",
  debug: "debug",
  log: "info",
  info: "info",
  warn: "warn",
  error: "error",
} as const;

type Level = "debug" | "info" | "warn" | "error";

const invocationId = new AsyncLocalStorage<string>();

/** Runs what answers a request; its id is the caller's `X-Request-Id`, or a new one. */
export function runInvocation(request: Pick<FunctionRequest, "headers">, answer: () => void): void {
  invocationId.run(requestIdOf(request), answer);
}

/** From now on `console` and the runtime's own log are lines of this format. */
export function formatLogs(kind: "json" | "text"): void {
  const line = kind === "json" ? jsonLine : textLine;
  formatLog(line);
  const write = (level: Level, text: string) =>
    void (level === "info" || level === "debug" ? process.stdout : process.stderr).write(
      line(level, readableStacks(text)),
    );
  for (const [method, level] of Object.entries(levels))
    console[method as keyof typeof levels] = (...args: unknown[]) => write(level, format(...args));
  console.trace = (...args: unknown[]) => {
    write("debug", traceOf(console.trace, args));
  };
  console.dir = (value: unknown, options?: InspectOptions) =>
    write("info", inspect(value, { customInspect: false, ...options }));
}

function jsonLine(level: Level, message: string, invocation = invocationId.getStore()): string {
  const time = new Date().toISOString();
  return `${JSON.stringify({ time, level, message, invocation })}\n`;
}

function textLine(level: Level, message: string, id = invocationId.getStore()): string {
  return `${new Date().toISOString()} ${level.toUpperCase().padEnd(5)} ${id ? `[${id}] ` : ""}${message}\n`;
}
