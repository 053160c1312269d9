import { type FunctionRequest } from "../function-request.ts";
import { givenId } from "../request-log.ts";
import { type BlankSpan, blankSpan } from "./otlp.ts";
import { spanKinds } from "./span.ts";

/** Of ids as the gateway makes them: UUIDs. Others make a span of their own. */
const idLength = 36;
const blankId = "\u0001".repeat(idLength);

/** What the span of a request says about it. */
export function attributesOf(
  request: FunctionRequest,
  id: string | null | undefined = givenId(request),
): Record<string, unknown> {
  return {
    // As OpenTelemetry's conventions name a header.
    ...(id != null && { "http.request.header.x-request-id": [id] }),
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
  hasId: boolean;
  template: BlankSpan;
}

let last: Known | undefined;

/** Whether the request's id fits a template. */
export function fitsTemplate(id: string | undefined): boolean {
  return id === undefined || id.length === idLength;
}

/** Requests that follow one another are often for the same, and have the same. */
export function templateOf(
  request: FunctionRequest,
  statusCode: number,
  { hasParent, hasId }: { hasParent: boolean; hasId: boolean },
): BlankSpan {
  const { method = "GET", originalUrl: url, host = "", protocol: scheme } = request;
  if (
    last?.statusCode === statusCode &&
    last.url === url &&
    last.method === method &&
    last.host === host &&
    last.scheme === scheme &&
    last.hasParent === hasParent &&
    last.hasId === hasId
  )
    return last.template;
  const template = createTemplate(request, statusCode, { hasParent, hasId });
  last = { method, url, host, scheme, statusCode, hasParent, hasId, template };
  return template;
}

function createTemplate(
  request: FunctionRequest,
  statusCode: number,
  { hasParent, hasId }: { hasParent: boolean; hasId: boolean },
): BlankSpan {
  const id = hasId ? blankId : undefined;
  const description = {
    name: request.method ?? "GET",
    kind: spanKinds.server,
    attributes: { ...attributesOf(request, id ?? null), "http.response.status_code": statusCode },
    events: [],
    status: { code: statusCode >= 500 ? 2 : 0 },
  };
  return blankSpan(description, hasParent, id);
}
