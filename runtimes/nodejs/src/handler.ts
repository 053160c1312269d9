import { type Server } from "node:http";
import { type FunctionRequest } from "./function-request.ts";
import { type FunctionResponse } from "./function-response.ts";
import { type EventLine, type LambdaCall } from "./lambda/event-line.ts";

/** What a Function's code turned out to be, in the one form that the server calls. */
export interface FunctionHandler {
  /**
   * Which body it wants: `request.body` as well, of forms with files too (`whole`) or not, only
   * `request.rawBody`, always or of text, JSON and forms (`typed`), or none but the stream.
   */
  body: "whole" | "parsed" | "raw" | "typed" | "stream";
  /**
   * Calls the user's code for one request. What it returns, at once or by promise, is the answer,
   * unless the response has been ended. Throws a `RequestError` before calling anything when the
   * request is not what such a handler is called with.
   */
  call(request: FunctionRequest, response: FunctionResponse): unknown;
  /** Its paths are its own, those included that the runtime answers itself for others. */
  hasRoutes?: boolean;
  /** It is served whole: it might also listen by itself, and need not. */
  isApplication?: boolean;
  /** Of an application: what a server of its own would call. */
  listener?: unknown;
  /** Its contract has the runtime answer browsers that ask beforehand, and let every page read the answers. */
  cors?: boolean;
  /** `websocket(socket, request)`, called for each connection when the Function exports it. */
  websocket?: UserFunction | undefined;
  /** The program's own, which listens for requests to change the protocol. */
  server?: Server | undefined;
  /** It expects what AWS' runtime has. */
  isLambda?: boolean;
  /** It has one event at a time, each in a turn of this line. */
  events?: EventLine | undefined;
  /** The call of one event alone, as a further thread makes it. */
  runEvent?: ((call: LambdaCall) => Promise<unknown>) | undefined;
  /** Called once: before the first request, and after the last. */
  start?: UserFunction | undefined;
  stop?: UserFunction | undefined;
}

/** A function of the user's, as it came out of the module. */
export type UserFunction = (...args: unknown[]) => unknown;

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

/** Settles when the response has been sent, or the client has disconnected; undefined when that is so already. */
export function answered(response: FunctionResponse): Promise<void> | undefined {
  if (response.writableEnded || response.destroyed) return undefined;
  return new Promise((resolve) => response.once("close", () => resolve()));
}
