import { createEvent } from "./event.ts";
import { type FunctionRequest } from "./function-request.ts";
import { type FunctionResponse } from "./function-response.ts";
import { logError } from "./log.ts";
import { type Metrics } from "./metrics.ts";
import { type Publisher } from "./publisher.ts";
import { sendResult } from "./result.ts";
import { type Settings } from "./settings.ts";

type SendResponse = (body?: unknown, status?: number, headers?: Record<string, string>) => void;

/** A Function's `main`. */
export type Handler = (event: unknown, context: unknown, sendResponse: SendResponse) => unknown;

export interface Invocation {
  handler: Handler;
  settings: Settings;
  metrics: Metrics;
  publisher: Publisher;
}

/**
 * Calls the Function for one request, whose body has been read, and answers with what comes of it.
 * A result that is there at once is sent at once: most are, and each turn of the event loop costs.
 * Throws a `RequestError` when the request makes no event.
 */
export function invoke(
  { handler, settings, metrics, publisher }: Invocation,
  request: FunctionRequest,
  response: FunctionResponse,
): void {
  const start = performance.now();
  const succeed = () => metrics.settle(performance.now() - start, false);
  const fail = (error: unknown) => {
    metrics.settle(performance.now() - start, true);
    logError("the handler threw", error);
    refuse(response, error);
  };
  const sendResponse: SendResponse = (body, status, headers) => {
    if (response.headersSent) return;
    if (headers) response.set(headers);
    if (status) response.status(status);
    sendResult(response, body)?.catch(fail);
  };
  // A handler that takes the callback, and returns nothing, will call it.
  const finish = (result: unknown) =>
    result === undefined && handler.length > 2 ? closed(response) : sendResult(response, result);

  const event = createEvent(request, response, publisher);
  metrics.countCall();
  try {
    const result = handler(event, contextOf(settings), sendResponse);
    const finishing = isThenable(result) ? Promise.resolve(result).then(finish) : finish(result);
    if (finishing) finishing.then(succeed, fail);
    else succeed();
  } catch (error) {
    fail(error);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

function closed(response: FunctionResponse): Promise<void> | undefined {
  if (response.writableEnded) return undefined;
  return new Promise((resolve) => response.once("close", () => resolve()));
}

function contextOf(settings: Settings): Record<string, unknown> {
  return {
    "function-name": settings.functionName,
    runtime: settings.runtime,
    namespace: settings.namespace,
    timeout: settings.timeoutSeconds,
    "body-size-limit": settings.bodyLimitMb,
  };
}

/** What a person sees of a failure: a thrown string is meant for them, an error's text is not. */
function refuse(response: FunctionResponse, error: unknown): void {
  if (response.writableEnded) return;
  // The status is out: only a broken connection still says that the body is not whole.
  if (response.headersSent) return void response.destroy();
  response.status(500).end(typeof error === "string" ? error : "Internal server error");
}
