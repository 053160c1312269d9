import { messageOf, StatusError } from "@spry/kube";
import { boundedWarnings } from "./warnings.ts";

const jsonHeaders = { "content-type": "application/json" };

export function jsonResponse(
  body: unknown,
  status = 200,
  warnings: readonly string[] = [],
): Response {
  return textResponse(JSON.stringify(body), status, warnings);
}

/** A response of text that is JSON already. */
export function textResponse(
  json: string,
  status = 200,
  warnings: readonly string[] = [],
): Response {
  if (warnings.length === 0) return new Response(json, { status, headers: jsonHeaders });
  const headers = new Headers(jsonHeaders);
  for (const warning of boundedWarnings(warnings))
    headers.append("warning", `299 - ${quoted(warning)}`);
  return new Response(json, { status, headers });
}

const streams = new WeakSet<Response>();

/** A response whose body is to be sent as it comes. */
export function streamResponse(
  body: ReadableStream<Uint8Array> | null,
  contentType: string,
): Response {
  const headers = { "content-type": contentType, "cache-control": "no-cache, private" };
  const response = new Response(body, { headers });
  streams.add(response);
  return response;
}

export function isStream(response: Response): boolean {
  return streams.has(response);
}

/** A failure as its `Status`; what is none is the server's own fault. */
export function errorResponse(error: unknown, warnings: readonly string[] = []): Response {
  const status =
    error instanceof StatusError
      ? error.status
      : new StatusError({ code: 500, message: `Internal error occurred: ${messageOf(error)}` })
          .status;
  const response = jsonResponse(status, status.code, warnings);
  const { retryAfterSeconds } = status.details ?? {};
  if (retryAfterSeconds) response.headers.set("retry-after", String(retryAfterSeconds));
  return response;
}

/** RFC 7234 section 5.5: a quoted string; a header holds no control characters. */
function quoted(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const clean = text.replace(/[\u0000-\u001f\u007f]+/g, " ").replace(/[^\u0020-\u00ff]/g, "?");
  return `"${clean.replace(/["\\]/g, "\\$&")}"`;
}
