/**
 * Errors that no call of the Function's has returned or thrown: in timers, and of promises for which no code waits. The request during
 * which one began would wait for its time limit, so it is answered.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type FunctionResponse } from "./function-response.ts";
import { type FunctionHandler } from "./handler.ts";
import { leaveLastWords } from "./last-words.ts";
import { logError, logLine } from "./log.ts";
import { refuse } from "./refuse.ts";
import { nameOf, requestIdOf } from "./request-log.ts";
import { endAfterRequests } from "./shutdown.ts";

const responses = new AsyncLocalStorage<FunctionResponse>();

type Call = FunctionHandler["call"];

/** Older versions follow each promise for it, which costs a tenth of a request. */
const isCheap = Number(process.versions.node.split(".")[0]) >= 24;

/** Calls the handler, so that stray errors are known by their request. */
export function followed(handler: FunctionHandler): Call {
  const call: Call = (request, response) => handler.call(request, response);
  if (handler.cors && !isCheap) return call;
  return (request, response) => responses.run(response, call, request, response);
}

const what = { uncaughtException: "uncaught exception", unhandledRejection: "unhandled rejection" };

/**
 * What a Function does besides its requests may fail without affecting their responses. Of programs that were written for
 * `node` itself, which would end, the process is replaced once it has answered its requests: `isReplaced`.
 */
export function surviveErrors(isReplaced: boolean): void {
  for (const [event, name] of Object.entries(what)) {
    process.on(event, (error: unknown) => {
      logError(name, error);
      const response = responses.getStore();
      if (response) answerFor(response, error);
      // The program says itself what is done about it.
      const isOwn = process.listenerCount(event) > 1;
      if (isReplaced && !isOwn) replaceProcess(name);
    });
  }
}

function answerFor(response: FunctionResponse, error: unknown): void {
  if (response.headersSent || response.writableEnded) return;
  const { req: request } = response;
  logLine(`${nameOf(request)}: ended by the error above`, requestIdOf(request));
  response.setHeader("x-request-id", requestIdOf(request));
  refuse(response, error instanceof Error ? error : new Error("thrown"));
}

let isEnding = false;

function replaceProcess(name: string): void {
  if (isEnding) return;
  isEnding = true;
  const text = `the Function's process ends because of an ${name}, as under node, when its requests have been answered`;
  logLine(text);
  leaveLastWords(`${text}\n`);
  endAfterRequests();
}
