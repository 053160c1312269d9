import { Context } from "../context.ts";
import { runInBackground } from "../background-work.ts";
import { type FunctionHandler, isThenable, type UserFunction } from "../handler.ts";
import { checkLength } from "../request-body.ts";
import { type Settings } from "../settings.ts";
import { parameterNames } from "./parameter-names.ts";
import { requestOf } from "../web/request.ts";

/**
 * `fetch(request, env, ctx)` of the web: a `Request` whose body is a stream, `process.env`, and the
 * context with `waitUntil`. It answers with a `Response`, which is a stream too.
 */
export function fetchHandler(fetch: UserFunction, settings: Settings): FunctionHandler {
  const { env } = process;
  return {
    body: "stream",
    hasRoutes: true,
    call(request) {
      checkLength(request, settings.bodyLimitMb);
      const context = new FetchContext(settings, request);
      const result = fetch(requestOf(request, settings.bodyLimitMb), env, context);
      return isThenable(result) ? Promise.resolve(result).then(something) : something(result);
    },
  };
}

/**
 * A function by itself, `(request[, context])` or `(request, env, ctx)`; undefined unless its first parameter is called a request, and
 * the second no response.
 */
export function fetchFunction(
  found: UserFunction,
  settings: Settings,
): FunctionHandler | undefined {
  const [first = "", second = ""] = parameterNames(found);
  if (!/^[_$]*req(?:uest)?$/i.test(first) || /^[_$]*res/i.test(second)) return undefined;
  const isWorkers = /env/i.test(second);
  const fetch: UserFunction = (request, env, context) =>
    isWorkers ? found(request, env, context) : found(request, context);
  return fetchHandler(fetch, settings);
}

class FetchContext extends Context {
  readonly waitUntil = runInBackground;
  readonly passThroughOnException = ignore;
}

function ignore(): void {}

/** An empty response would hide that the handler has forgotten its own, or that no route matches. */
function something(result: unknown): unknown {
  if (result !== undefined && result !== null) return result;
  throw new TypeError(`fetch returned ${String(result)} instead of a Response`);
}
