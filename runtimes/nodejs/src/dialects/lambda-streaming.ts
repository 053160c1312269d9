import { answered, isThenable, type UserFunction } from "../handler.ts";
import { type FunctionResponse } from "../function-response.ts";

/** What `awslambda.streamifyResponse` was given. */
const streaming = new WeakSet<object>();

export function isStreaming(handler: unknown): boolean {
  return typeof handler === "function" && streaming.has(handler);
}

/**
 * AWS Lambda's `awslambda`, a name that is there without being imported: `streamifyResponse(handler)`, whose
 * handler is `(event, responseStream, context)`, and `HttpResponseStream.from(responseStream, { statusCode, headers, cookies })`.
 */
export function provideAwsLambda(): void {
  const value = { streamifyResponse, HttpResponseStream: { from } };
  Object.defineProperty(globalThis, "awslambda", { value, configurable: true, writable: true });
}

function streamifyResponse(handler: UserFunction): UserFunction {
  streaming.add(handler);
  return handler;
}

interface Metadata {
  statusCode?: number;
  headers?: Record<string, string | number | boolean>;
  cookies?: string[];
}

function from(response: FunctionResponse, { statusCode, headers, cookies }: Metadata) {
  if (statusCode !== undefined) response.status(statusCode);
  for (const [name, value] of Object.entries(headers ?? {}))
    // How long the connection lives is not the handler's to say.
    if (name.toLowerCase() !== "connection") response.set(name, value);
  if (cookies) response.append("set-cookie", cookies);
  return response;
}

/** Calls it with the response as its stream, until that has ended. */
export async function stream(
  handler: UserFunction,
  event: unknown,
  context: unknown,
  response: FunctionResponse,
): Promise<void> {
  response.setHeader("content-type", "application/octet-stream");
  const setContentType = (type: string) => void response.setHeader("content-type", type);
  const result = handler(event, Object.assign(response, { setContentType }), context);
  if (isThenable(result)) await result;
  // What is piped into it will end it.
  if (response.listenerCount("unpipe") === 0) response.end();
  await answered(response);
}
