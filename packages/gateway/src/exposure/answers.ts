import { corsHeaders } from "@spry/exposure";
import { type ErrorResponse } from "../http/error-response.ts";
import { type Exposed } from "./exposure.ts";

const removed = new Set<string>(corsHeaders);

/** A Service's headers with those of the APIRule's CORS policy in place of its own; names and values by turns. */
export function withCors(headers: string[], { responseHeaders }: Exposed): string[] {
  const out: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    if (!removed.has(name.toLowerCase())) out.push(name, headers[i + 1] ?? "");
  }
  for (const name in responseHeaders) out.push(name, responseHeaders[name] ?? "");
  return out;
}

/** A page of an origin that is allowed may read why it is refused. */
export function withCorsOf(error: ErrorResponse, exposed: Exposed | undefined): ErrorResponse {
  return exposed ? { ...error, headers: { ...error.headers, ...exposed.responseHeaders } } : error;
}
