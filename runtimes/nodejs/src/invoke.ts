import { monotonicMs } from "./clock.ts";
import { type FunctionRequest } from "./function-request.ts";
import { type FunctionResponse } from "./function-response.ts";
import { type FunctionHandler, isThenable } from "./handler.ts";
import { logError } from "./log.ts";
import { type Metrics } from "./metrics.ts";
import { refuse } from "./refuse.ts";
import { isRequestError } from "./request-error.ts";
import { nameOf, requestIdOf } from "./request-log.ts";
import { sendResult } from "./result.ts";
import { type Tracing } from "./tracing/tracing.ts";
import { type Settings } from "./settings.ts";

export interface Invocation {
  handler: FunctionHandler;
  settings: Settings;
  metrics: Metrics;
  /** There when spans are exported, or since the first request that was part of a trace. */
  tracing?: Tracing;
  /** There when lines of the log carry their invocation: runs what answers a request. */
  follow?: (request: FunctionRequest, answer: () => void) => void;
}

/**
 * Calls the Function for one request, whose body has been read, and answers with what comes of it.
 * A result that is there at once is sent at once: most are, and each turn of the event loop costs.
 * Throws a `RequestError` when the request is nothing that the handler can be called with.
 */
export function invoke(
  { handler, metrics }: Invocation,
  request: FunctionRequest,
  response: FunctionResponse,
): void {
  const startMs = monotonicMs();
  const fail = (error: unknown) => {
    metrics.settle(monotonicMs() - startMs, true);
    if (!isRequestError(error)) {
      logError(`${nameOf(request)}: the handler threw`, error);
      if (!response.headersSent) response.setHeader("x-request-id", requestIdOf(request));
    }
    refuse(response, error);
  };
  metrics.begin();
  let finishing: Promise<void> | undefined;
  try {
    const result = handler.call(request, response);
    finishing = isThenable(result)
      ? Promise.resolve(result).then((value) => sendResult(response, value))
      : sendResult(response, result);
  } catch (error) {
    if (!isRequestError(error)) return fail(error);
    metrics.withdraw();
    throw error;
  }
  if (finishing) finishing.then(() => metrics.settle(monotonicMs() - startMs, false), fail);
  else metrics.settle(monotonicMs() - startMs, false);
}
