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
