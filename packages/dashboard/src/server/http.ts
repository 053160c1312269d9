import { type IncomingMessage, type ServerResponse } from "node:http";
import { type BodyShare } from "./body-budget.ts";

/** A request that cannot be answered as it was sent; the message is for the user. */
export class RequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The body. More than `maxBytes`, or more than the user's share has room for, is a `RequestError`. */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  share?: BodyShare,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes)
      throw new RequestError(413, `the request's body exceeds its limit (${maxBytes} bytes)`);
    if (share?.take(chunk.length) === false)
      throw new RequestError(503, "too many large requests at once: try again in a moment");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Whether `fetch`'s Request accepts the body: for GET and HEAD it does not. */
export function hasBody(method: string, body: Buffer): boolean {
  return body.length > 0 && method !== "GET" && method !== "HEAD";
}

/** A body that is one JSON object. */
export async function readJson(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse((await readBody(request, maxBytes)).toString("utf8"));
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch (error) {
    if (error instanceof RequestError) throw error;
  }
  throw new RequestError(400, "the request's body must be a JSON object");
}

export function sendJson(
  response: ServerResponse,
  status: number,
  headers: Record<string, string>,
  value: unknown,
): void {
  response.writeHead(status, { ...headers, "content-type": "application/json" });
  response.end(JSON.stringify(value));
}
