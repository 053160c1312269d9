import { readCloudEvent } from "../cloud-event.ts";
import { FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { type FunctionHandler, isThenable, type UserFunction } from "../handler.ts";
import { backgroundIn, backgroundOf, cloudEventOf } from "./google-events.ts";
import { LoadError } from "../load-error.ts";
import { essenceOf } from "../media-type.ts";
import { parseBody } from "../request-body.ts";
import { requestHandler } from "../request-handler.ts";

/** Functions by name, registered while the Function's code was loaded. */
const registered = new Map<string, FunctionHandler>();

/**
 * What `require("@google-cloud/functions-framework")` gives a Function: the same registration,
 * without the server that the package brings.
 */
export const functionsFramework = {
  http: (name: string, handler: UserFunction) => void registered.set(name, httpHandler(handler)),
  cloudEvent: (name: string, handler: UserFunction) =>
    void registered.set(name, cloudEventHandler(handler)),
  typed: (name: string, handler: UserFunction) => void registered.set(name, typedHandler(handler)),
};

/** By FUNCTION_SIGNATURE_TYPE, of what is only exported. */
const signatures: Record<string, (handler: UserFunction) => FunctionHandler> = {
  cloudevent: cloudEventHandler,
  event: backgroundHandler,
  typed: typedHandler,
};

/**
 * The function that FUNCTION_TARGET names, registered or exported (then FUNCTION_SIGNATURE_TYPE says
 * how it is called, `http` if it is silent); without FUNCTION_TARGET the one that was registered last. Throws a LoadError
 * when the name means nothing; `exported` are the names of what the code exports.
 */
export function targetOf(
  exportOf: (name: string) => unknown,
  exported: readonly string[],
): FunctionHandler | undefined {
  const { FUNCTION_TARGET: target, FUNCTION_SIGNATURE_TYPE: signature = "http" } = process.env;
  // As the framework sets Express up.
  FunctionRequest.trustsProxies = registered.size > 0 || Boolean(target);
  if (!target) return [...registered.values()].at(-1);
  const handler = registered.get(target);
  if (handler) return handler;
  const found = exportOf(target);
  if (typeof found === "function")
    return (signatures[signature] ?? httpHandler)(found as UserFunction);
  const names = (title: string, all: Iterable<string>) => `${title} are ${[...all].join(", ")}`;
  const known = [
    ...(registered.size > 0 ? [names("registered functions", registered.keys())] : []),
    ...(exported.length > 0 ? [names("exports", exported)] : []),
  ];
  throw new LoadError(
    `loading the Function: FUNCTION_TARGET names ${target}, which does not exist; ` +
      (known.join("; ") || "the code neither registers nor exports a function"),
  );
}

/**
 * Express-like; unlike elsewhere the bytes of a form with files are there too, in `rawBody`, and without a body
 * there is an empty one to look into, as the framework had it up to its version 3.
 */
function httpHandler(handler: UserFunction): FunctionHandler {
  const answering = requestHandler(handler);
  return {
    body: "raw",
    call(request, response) {
      request.body = bodyOf(request);
      return answering.call(request, response);
    },
  };
}

const parsed = /^(?:application\/(?:json|cloudevents\+json|x-www-form-urlencoded)|text\/plain)$/;

/** The framework parses these types only; of all others, `application/vnd.api+json` included, the body is its bytes. */
function bodyOf(request: FunctionRequest): unknown {
  const { rawBody } = request;
  if (!rawBody) return {};
  const isParsed = parsed.test(essenceOf(request.headers["content-type"]));
  return isParsed ? parseBody(rawBody, request) : rawBody;
}

/** `handler(event[, callback])`: attributes and `data` side by side. Nothing returned is 204. */
function cloudEventHandler(handler: UserFunction): FunctionHandler {
  return {
    body: "whole",
    call(request, response) {
      const event = readCloudEvent(request, request.body);
      const given = event ? { ...event.attributes, data: event.data } : otherEvent(request);
      return orNothing(response, resultOf(handler, [given]));
    },
  };
}

/** Of the first generation, as a CloudEvent; whatever else was sent as it is. */
function otherEvent({ body = {}, path }: FunctionRequest): unknown {
  return cloudEventOf(backgroundIn(body, path), body) ?? body;
}

/** `handler(data, context[, callback])` of the first generation. */
function backgroundHandler(handler: UserFunction): FunctionHandler {
  return {
    body: "whole",
    call(request, response) {
      const event = readCloudEvent(request, request.body);
      const { data, context } = event
        ? backgroundOf(event)
        : backgroundIn(request.body, request.path);
      return orNothing(response, resultOf(handler, [data, context]));
    },
  };
}

/** `handler(body)`: JSON to JSON. */
function typedHandler(handler: UserFunction): FunctionHandler {
  return {
    body: "whole",
    call: (request, response) => orNothing(response, handler(request.body)),
  };
}

/** One that takes one more argument is called back. */
function resultOf(handler: UserFunction, args: unknown[]): unknown {
  if (handler.length <= args.length) return handler(...args);
  return new Promise((resolve, reject) => {
    handler(...args, (error: unknown, value: unknown) =>
      error === null || error === undefined ? resolve(value) : reject(error),
    );
  });
}

function orNothing(response: FunctionResponse, result: unknown): unknown {
  if (isThenable(result))
    return Promise.resolve(result).then((value) => orNothing(response, value));
  if (result === undefined || result === null) response.status(204);
  return result;
}
