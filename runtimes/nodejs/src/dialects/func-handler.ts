import { type CloudEvent, readCloudEvent } from "../cloud-event.ts";
import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { type FunctionHandler, type UserFunction } from "../handler.ts";
import { Context } from "../context.ts";
import { type Settings } from "../settings.ts";

/**
 * `handle(context, body)` of Knative's `func`, for an event `handle(context, event)`. It returns a
 * body, `{ statusCode, headers, body }`, or an event, which is sent in binary mode.
 */
export function funcHandler(handle: UserFunction, settings: Settings): FunctionHandler {
  return {
    body: "parsed",
    async call(request, response) {
      const event = readCloudEvent(request, request.body);
      const cloudEvent = event && { ...event.attributes, data: event.data };
      const context = Object.assign(new Context(settings, request), {
        ...requestParts(request),
        cloudevent: cloudEvent,
        cloudEvent,
        log: logger,
        cloudEventResponse,
      });
      return applyResult(response, await handle(context, cloudEvent ?? request.body));
    },
  };
}

function requestParts(request: FunctionRequest) {
  const { body, rawBody, headers, query, method, httpVersion } = request;
  const { httpVersionMajor, httpVersionMinor } = request;
  const version = { httpVersion, httpVersionMajor, httpVersionMinor };
  return { req: request, body, rawBody, headers, query, method, ...version };
}

function applyResult(response: FunctionResponse, result: unknown): unknown {
  if (result === undefined || result === null) {
    if (!response.headersSent) response.status(204);
    return undefined;
  }
  if (typeof result !== "object") return result;
  const { specversion, type, source } = result as Record<string, unknown>;
  if (specversion && type && source) {
    const { data, ...attributes } = result as Record<string, unknown>;
    return sendEvent(response, { attributes, data });
  }
  if (!("statusCode" in result || "headers" in result || "body" in result)) return result;
  const { statusCode, headers, body } = result as {
    statusCode?: number;
    headers?: Record<string, string>;
    body?: unknown;
  };
  if (statusCode) response.status(statusCode);
  if (headers) response.set(headers);
  return body;
}

function sendEvent(response: FunctionResponse, { attributes, data }: CloudEvent): unknown {
  for (const [name, value] of Object.entries(attributes)) {
    // Events of the cloudevents package have members for all attributes, also for those without a value.
    if (value === undefined) continue;
    if (name === "datacontenttype") response.type(String(value));
    else if (typeof value === "string") response.set(`ce-${name}`, encodeURI(value));
  }
  return data;
}

/** `context.cloudEventResponse(data).type(…).source(…).response()`. */
function cloudEventResponse(data: unknown) {
  const event: Record<string, unknown> = {
    specversion: "1.0",
    id: crypto.randomUUID(),
    type: "dev.knative.function.response",
    source: "/",
    data,
  };
  const builder: Record<string, (value: unknown) => unknown> = { response: () => event };
  for (const name of ["id", "type", "source"])
    builder[name] = (value) => {
      event[name] = value;
      return builder;
    };
  builder["version"] = (value) => {
    event["specversion"] = value;
    return builder;
  };
  return builder;
}

/** The levels of pino that Functions call. */
const logger = {
  trace: console.debug,
  debug: console.debug,
  info: console.info,
  warn: console.warn,
  error: console.error,
  fatal: console.error,
};
