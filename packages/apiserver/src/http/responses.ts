import { messageOf, StatusError } from "@spry/kube";
import { type ListText } from "./list-text.ts";
import { type ByteSource } from "./byte-source.ts";
import { type HttpHeaders, HttpResponse, PacedBody } from "./message.ts";
import { boundedWarnings } from "./warnings.ts";

const contentType = "application/json";

export function jsonResponse(
  body: unknown,
  status = 200,
  warnings: readonly string[] = [],
): HttpResponse {
  return textResponse(JSON.stringify(body), status, warnings);
}

/** A response of text that is JSON already. */
export function textResponse(
  json: string | ListText,
  status = 200,
  warnings: readonly string[] = [],
): HttpResponse {
  const headers: HttpHeaders = { "content-type": contentType };
  if (warnings.length > 0) {
    headers.warning = boundedWarnings(warnings).map((warning) => `299 - ${quoted(warning)}`);
  }
  return new HttpResponse(json, { status, headers });
}

/** A response whose body is sent as it comes. */
export function streamResponse(
  body: ReadableStream<Uint8Array> | null,
  type: string,
): HttpResponse {
  return new HttpResponse(body, {
    headers: { "content-type": type, "cache-control": "no-cache, private" },
  });
}

/** The same, taken from its source as fast as the client reads. */
export function pacedResponse(source: ByteSource, type: string): HttpResponse {
  return new HttpResponse(new PacedBody(source), {
    headers: { "content-type": type, "cache-control": "no-cache, private" },
  });
}

/** The answer to a HEAD: what a GET would be answered, without its body. */
export function headOf({ status, headers }: HttpResponse): HttpResponse {
  return new HttpResponse(null, { status, headers });
}

/** A failure as its `Status`; what is none is the server's own fault. */
export function errorResponse(error: unknown, warnings: readonly string[] = []): HttpResponse {
  const status =
    error instanceof StatusError
      ? error.status
      : new StatusError({ code: 500, message: `Internal error occurred: ${messageOf(error)}` })
          .status;
  const response = jsonResponse(status, status.code, warnings);
  const { retryAfterSeconds } = status.details ?? {};
  if (retryAfterSeconds) response.headers["retry-after"] = String(retryAfterSeconds);
  return response;
}

/** RFC 7234 section 5.5: a quoted string; a header holds no control characters. */
function quoted(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const clean = text.replace(/[\u0000-\u001f\u007f]+/g, " ").replace(/[^\u0020-\u00ff]/g, "?");
  return `"${clean.replace(/["\\]/g, "\\$&")}"`;
}
