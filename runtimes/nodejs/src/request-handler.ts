import { type FunctionResponse } from "./function-response.ts";
import { answered, type FunctionHandler, isThenable, type UserFunction } from "./handler.ts";

/**
 * `main(request, response)` as in Express, since nodejs26: what it returns means nothing, and the
 * request is open until the handler ends the response.
 */
export function requestHandler(main: UserFunction): FunctionHandler {
  return {
    body: "parsed",
    call(request, response) {
      const result = main(request, response);
      return isThenable(result)
        ? Promise.resolve(result).then(() => answered(response))
        : answered(response);
    },
  };
}

/** Responds to requests that are not WebSockets, where a Function has no other handler. */
export const webSocketsOnly = requestHandler((_request, response) =>
  (response as FunctionResponse).set("upgrade", "websocket").status(426).end("Upgrade Required"),
);
