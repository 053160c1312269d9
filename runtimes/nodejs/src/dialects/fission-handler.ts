import { inspect } from "node:util";
import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { type FunctionHandler, isThenable, type UserFunction } from "../handler.ts";
import { readText } from "../request-body.ts";

/**
 * `(context)` and `(context, callback)` of Fission. It answers by `{ status, body, headers }`, or by
 * `callback(status, body, headers)`, or writes the response itself.
 */
export function fissionHandler(handler: UserFunction): FunctionHandler {
  return {
    body: "parsed",
    async call(request, response) {
      const answer = await answerOf(handler, new Context(request, response));
      return isAnswer(answer) ? applyAnswer(response, answer) : answer;
    },
  };
}

/**
 * What the handler gets. As text it is the body: that is what OpenFaaS' older template, whose handlers look the
 * same, calls `context`.
 */
class Context {
  readonly request: FunctionRequest;
  readonly response: FunctionResponse;

  constructor(request: FunctionRequest, response: FunctionResponse) {
    this.request = request;
    this.response = response;
  }

  toString(): string {
    const { rawBody } = this.request;
    return rawBody ? readText(rawBody, this.request) : "";
  }
}

function answerOf(handler: UserFunction, context: Context): unknown {
  if (handler.length < 2) return handler(context);
  return new Promise((resolve, reject) => {
    const callback = (first: unknown, second: unknown, headers: unknown) => {
      // OpenFaaS' older template: an error or none, and the answer.
      if (first === undefined || first === null) resolve(second);
      else if (isStatus(first)) resolve({ status: first, body: second, headers });
      else reject(first instanceof Error ? first : noStatus(first));
    };
    const returned = handler(context, callback);
    // Who returns nothing will call it.
    const orCalled = (value: unknown) => value !== undefined && resolve(value);
    if (isThenable(returned)) returned.then(orCalled, reject);
    else orCalled(returned);
  });
}

const noStatus = (value: unknown) =>
  new TypeError(
    `callback(${inspect(value)}) has no status: call it as callback(200, body, headers)`,
  );

interface Answer {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Distinguished from the Function's own data by its status, which is a valid one, and by its other keys. */
function isAnswer(value: unknown): value is Answer {
  if (value === null || typeof value !== "object" || !("status" in value)) return false;
  return isStatus(value.status) && Object.keys(value).every((name) => members.has(name));
}

const members = new Set(["status", "body", "headers"]);

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 999;
}

/** Streams are for the caller to send. */
function applyAnswer(response: FunctionResponse, { status, body, headers }: Answer): unknown {
  if (response.headersSent) return undefined;
  response.status(status);
  if (headers) response.set(headers);
  if (typeof body === "object" && body !== null && Symbol.asyncIterator in body) return body;
  response.send(body);
  return undefined;
}
