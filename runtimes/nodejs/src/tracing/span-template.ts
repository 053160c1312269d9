import { type FunctionRequest } from "../function-request.ts";
import { type BlankSpan, blankSpan } from "./otlp.ts";
import { spanKinds } from "./span.ts";

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
  template: BlankSpan;
}

let last: Known | undefined;

/** Requests that follow one another are often for the same, and have the same. */
export function templateOf(
  request: FunctionRequest,
  statusCode: number,
  hasParent: boolean,
): BlankSpan {
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
): BlankSpan {
  const description = {
    name: request.method ?? "GET",
    kind: spanKinds.server,
    attributes: { ...attributesOf(request), "http.response.status_code": statusCode },
    events: [],
    status: { code: statusCode >= 500 ? 2 : 0 },
  };
  return blankSpan(description, hasParent);
}
