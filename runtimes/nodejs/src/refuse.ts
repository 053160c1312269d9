import { FunctionResponse } from "./function-response.ts";
import { letFinish } from "./linger.ts";
import { isRequestError } from "./request-error.ts";
import { logRefused } from "./request-log.ts";

/** What a client sees of a failure: a thrown string is meant for it, an error's text is not. */
export function refuse(response: FunctionResponse, error: unknown): void {
  if (response.writableEnded) return;
  // The status is out: only a broken connection still says that the body is not whole.
  if (response.headersSent) return void response.destroy();
  const status = isRequestError(error) ? error.status : 500;
  if (isRequestError(error) && (status === 413 || status === 503))
    logRefused(response.req, response, error.message);
  if (isRequestError(error)) letFinish(response.req);
  takeBack(response);
  response.withdraw();
  if (status === 503) response.set("retry-after", "1");
  response.type("txt");
  // The body that a handler was reading turned out to be too large.
  if (isRequestError(error)) return void response.status(error.status).end(error.message);
  response.status(500).end(typeof error === "string" ? error : "Internal server error");
}

/** Express gives responses its own class. */
export function takeBack(response: FunctionResponse): void {
  if (!(response instanceof FunctionResponse))
    Object.setPrototypeOf(response, FunctionResponse.prototype);
}
