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

/** Calls the Function for one request, whose body has been read, and answers with what comes of it. */
export async function invoke(
  { handler, settings, metrics, publisher }: Invocation,
  request: FunctionRequest,
  response: FunctionResponse,
): Promise<void> {
  const event = createEvent(request, response, publisher);
  const start = performance.now();
  let failed = false;
  metrics.countCall();
  try {
    const { promise: answered, resolve: answer } = Promise.withResolvers<unknown>();
    const sendResponse: SendResponse = (body, status, headers) => {
      if (!response.headersSent) {
        if (headers) response.set(headers);
        if (status) response.status(status);
      }
      answer(body);
    };
    let result = await handler(event, contextOf(settings), sendResponse);
    // A handler that takes the callback, and returns nothing, will call it.
    if (result === undefined && handler.length > 2 && !response.writableEnded) {
      response.once("close", () => answer(undefined));
      result = await answered;
    }
    await sendResult(response, result);
  } catch (error) {
    failed = true;
    logError("the handler threw", error);
    refuse(response, error);
  } finally {
    metrics.settle(performance.now() - start, failed);
  }
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
