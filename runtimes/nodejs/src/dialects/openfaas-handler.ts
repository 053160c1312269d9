import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { type FunctionHandler, isThenable, type UserFunction } from "../handler.ts";
import { readText } from "../request-body.ts";

/**
 * `(event, context, callback)` of OpenFaaS' templates for Node.js. It answers by what it returns, or by
 * `context.succeed`, `context.fail` or the callback, whichever comes first. With `RAW_BODY=true` bodies are bytes.
 */
export function openFaasHandler(handler: UserFunction): FunctionHandler {
  const isRaw = process.env["RAW_BODY"] === "true";
  return {
    body: isRaw ? "raw" : "parsed",
    async call(request, response) {
      const context = new Context(response);
      const result = await new Promise((resolve, reject) => {
        context.succeed = resolve;
        context.fail = (error) => resolve(context.failure(error));
        const callback = (error: unknown, value: unknown) =>
          error === null || error === undefined ? resolve(value) : resolve(context.failure(error));
        const returned = handler(eventOf(request, isRaw), context, callback);
        if (isThenable(returned)) returned.then(resolve, reject);
        // Who takes the callback, and returns nothing, will call it.
        else if (returned !== undefined || handler.length < 3) resolve(returned);
      });
      return result;
    },
  };
}

/** A body that is of no type is text. */
function eventOf(request: FunctionRequest, isRaw: boolean) {
  const { rawBody, method, query, path } = request;
  const { "content-type": type = "text/plain" } = request.headers;
  const headers = { ...request.headers, "content-type": type };
  const isTyped = "content-type" in request.headers;
  const body = isRaw ? rawBody : isTyped ? request.body : rawBody && readText(rawBody, request);
  return { body, headers, method, query, path };
}

/** `status()` and `headers()` return what is set, and set what they are given. */
class Context {
  succeed: (value?: unknown) => void = () => {};
  fail: (error?: unknown) => void = () => {};
  readonly #response: FunctionResponse;
  #hasStatus = false;

  constructor(response: FunctionResponse) {
    this.#response = response;
  }

  status(code?: number): this | number {
    if (code === undefined) return this.#response.statusCode;
    this.#hasStatus = true;
    this.#response.status(code);
    return this;
  }

  headers(values?: Record<string, string>): unknown {
    if (values === undefined) return this.#response.getHeaders();
    this.#response.set(values);
    return this;
  }

  /** What is sent when it has failed: unlike the text of an error that is thrown, it is meant for the caller. */
  failure(error: unknown): string {
    if (!this.#hasStatus) this.#response.status(500);
    return error instanceof Error ? error.message : String(error);
  }
}
