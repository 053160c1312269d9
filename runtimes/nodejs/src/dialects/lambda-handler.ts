import { randomUUID } from "node:crypto";
import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { type FunctionHandler, isThenable, type UserFunction } from "../handler.ts";
import { EventLine, type LambdaCall } from "../lambda/event-line.ts";
import { contextOf } from "../lambda/lambda-context.ts";
import { asHandlersSeeIt, eventOf } from "../lambda/lambda-event.ts";
import { type Settings } from "../settings.ts";
import { stream } from "./lambda-streaming.ts";

/** `handler(event, context, callback)` of AWS Lambda, with an event of API Gateway; with one event at a time unless that is a stream. */
export function lambdaHandler(
  handler: UserFunction,
  settings: Settings,
  isStream = false,
): FunctionHandler {
  if (isStream) return streamed(handler, settings);
  const runEvent = ({ event, endMs }: LambdaCall) => called(handler, event, endMs, settings);
  const isSingle = settings.concurrency === undefined;
  const events = isSingle ? new EventLine(runEvent, settings.queueLength) : undefined;
  return {
    body: "raw",
    isLambda: true,
    events,
    runEvent,
    async call(request, response) {
      const call = callOf(request, settings);
      const result = await (events ? events.enter(call, response) : runEvent(call));
      return response.writableEnded ? undefined : applyResult(response, result);
    },
  };
}

function callOf(request: FunctionRequest, settings: Settings): LambdaCall {
  const event = eventOf(request, settings, randomUUID());
  const endMs = Date.now() + settings.timeoutSeconds * 1000;
  return { event, endMs };
}

function streamed(handler: UserFunction, settings: Settings): FunctionHandler {
  return {
    body: "raw",
    isLambda: true,
    async call(request, response) {
      const { event, endMs } = callOf(request, settings);
      const { requestId } = event.requestContext;
      const context = contextOf(settings, requestId, endMs, () => {});
      return stream(handler, asHandlersSeeIt(event), context, response);
    },
  };
}

async function called(
  handler: UserFunction,
  event: LambdaCall["event"],
  endMs: number,
  settings: Settings,
): Promise<unknown> {
  return await new Promise((resolve, reject) => {
    const callback = (error: unknown, value: unknown) =>
      error === null || error === undefined ? resolve(value) : reject(error);
    const context = contextOf(settings, event.requestContext.requestId, endMs, callback);
    const returned = handler(asHandlersSeeIt(event), context, callback);
    if (isThenable(returned)) returned.then(resolve, reject);
    else if (isData(returned)) resolve(returned);
  });
}

/**
 * Of what a handler returns without a promise, only text and plain data are an answer: AWS ignores that, too, but some
 * handlers rely on it. All else, such as a timer, a server or the `{ promise }` of aws-serverless-express, comes by accident, and the
 * callback or `context` follows. How many parameters it has says nothing: wrappers have others.
 */
function isData(value: unknown): boolean {
  if (typeof value === "string" || Array.isArray(value)) return true;
  if (value === null || typeof value !== "object") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null;
  return isPlain && !Object.values(value).some((each) => isThenable(each) || isCallable(each));
}

const isCallable = (value: unknown) => typeof value === "function";

interface LambdaResult {
  statusCode?: number;
  headers?: Record<string, string | number | boolean>;
  /** Of format 1.0, which many handlers still answer in. */
  multiValueHeaders?: Record<string, string[]>;
  cookies?: string[];
  body?: unknown;
  isBase64Encoded?: boolean;
}

/** Without a status code it is the body, as JSON; that is also what a body is that no header says more about. */
function applyResult(response: FunctionResponse, result: unknown): unknown {
  if (result === null || typeof result !== "object" || !("statusCode" in result)) {
    response.type("json");
    return typeof result === "string" ? result : JSON.stringify(result);
  }
  const { statusCode, headers, multiValueHeaders, cookies, body, isBase64Encoded } =
    result as LambdaResult;
  response.status(Number(statusCode));
  if (headers) response.set(headers);
  for (const [name, values] of Object.entries(multiValueHeaders ?? {}))
    response.append(name, values.map(String));
  if (cookies) response.append("set-cookie", cookies);
  if (!response.hasHeader("content-type")) response.setHeader("content-type", "application/json");
  return isBase64Encoded ? Buffer.from(String(body), "base64") : body;
}
