import { type FunctionRequest } from "../function-request.ts";
import { descriptionJson } from "./otlp-json.ts";
import { spanKinds } from "./span.ts";
import { idDigits } from "./trace-context.ts";

/** An invocation's span in OTLP's JSON form, but for what differs from one to the next: that is zeros, at these places. */
export interface SpanTemplate {
  json: Uint8Array;
  places: Places;
}

/** Of ids in hexadecimal digits, and of times in 16 decimal digits of microseconds. */
interface Places {
  traceId: number;
  spanId: number;
  parentSpanId: number;
  start: number;
  end: number;
}

/** What the span of a request says about it. */
export function attributesOf(request: FunctionRequest): Record<string, unknown> {
  return {
    "http.request.method": request.method,
    "url.path": request.path,
    "url.scheme": request.protocol,
    "server.address": request.hostname ?? "",
  };
}

interface Known {
  method: string;
  url: string;
  host: string;
  scheme: string;
  statusCode: number;
  hasParent: boolean;
  template: SpanTemplate;
}

let last: Known | undefined;

/** Requests that follow one another are often for the same, and have the same. */
export function templateOf(
  request: FunctionRequest,
  statusCode: number,
  hasParent: boolean,
): SpanTemplate {
  const { method = "GET", originalUrl: url, host = "", protocol: scheme } = request;
  if (
    last?.statusCode === statusCode &&
    last.url === url &&
    last.method === method &&
    last.host === host &&
    last.scheme === scheme &&
    last.hasParent === hasParent
  )
    return last.template;
  const template = createTemplate(request, statusCode, hasParent);
  last = { method, url, host, scheme, statusCode, hasParent, template };
  return template;
}

function createTemplate(
  request: FunctionRequest,
  statusCode: number,
  hasParent: boolean,
): SpanTemplate {
  const places: Places = { traceId: 0, spanId: 0, parentSpanId: 0, start: 0, end: 0 };
  let json = "";
  const add = (place: keyof Places, before: string, digits: number, after: string) => {
    places[place] = json.length + before.length;
    json += before + "0".repeat(digits) + after;
  };
  add("traceId", `{"traceId":"`, idDigits.trace, `"`);
  add("spanId", `,"spanId":"`, idDigits.span, `"`);
  if (hasParent) add("parentSpanId", `,"parentSpanId":"`, idDigits.span, `"`);
  add("start", `,"startTimeUnixNano":"`, 16, `000"`);
  add("end", `,"endTimeUnixNano":"`, 16, `000",`);
  json += descriptionJson({
    name: request.method ?? "GET",
    kind: spanKinds.server,
    attributes: { ...attributesOf(request), "http.response.status_code": statusCode },
    events: [],
    status: { code: statusCode >= 500 ? 2 : 0 },
  });
  return { json: Buffer.from(`${json}}`), places };
}
