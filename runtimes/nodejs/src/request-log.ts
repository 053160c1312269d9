/**
 * Which request a line of the log is about: its `X-Request-Id`, which the gateway gives each request and its response has, or a
 * new id, which responses of the runtime's own name then.
 */
import { type IncomingMessage, type ServerResponse } from "node:http";
import { logLine } from "./log.ts";
import { monotonicMs } from "./clock.ts";

const idPattern = /^[\w.:+/=-]{1,128}$/;
/** Clients that often send too much must not fill the log. */
const linesPerSecond = 50;
const maxPathLength = 200;

const made = new WeakMap<object, string>();
let second = 0;
let lines = 0;
let left = 0;

/** The id in its header; undefined where there is none, or none that may stand in a line. */
export function givenId({ headers }: Pick<IncomingMessage, "headers">): string | undefined {
  const given = headers["x-request-id"]?.toString();
  return given !== undefined && idPattern.test(given) ? given : undefined;
}

export function requestIdOf(request: Pick<IncomingMessage, "headers">): string {
  const given = givenId(request) ?? made.get(request);
  if (given !== undefined) return given;
  const id = crypto.randomUUID();
  made.set(request, id);
  return id;
}

/** `request <id> (GET /path)`: without the query, which may hold a secret. */
export function nameOf(request: IncomingMessage): string {
  const path = (request.url ?? "").split("?", 1)[0] ?? "";
  const shown = path.length > maxPathLength ? `${path.slice(0, maxPathLength)}…` : path;
  return `request ${requestIdOf(request)} (${request.method} ${shown})`;
}

/** One line for a request that got no answer of the Function's: that it took too long, that its body is too large. */
export function logRefused(request: IncomingMessage, response: ServerResponse, why: string): void {
  if (!response.headersSent) response.setHeader("x-request-id", requestIdOf(request));
  const now = Math.floor(monotonicMs() / 1000);
  if (now !== second) {
    if (left > 0) logLine(`${left} more requests were refused within a second`);
    [second, lines, left] = [now, 0, 0];
  }
  if (++lines > linesPerSecond) left++;
  else logLine(`${nameOf(request)}: ${why}`, requestIdOf(request));
}
