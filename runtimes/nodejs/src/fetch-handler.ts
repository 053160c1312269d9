import { Readable } from "node:stream";
import { Context } from "./context.ts";
import { runInBackground } from "./background-work.ts";
import { type FunctionHandler, type UserFunction } from "./handler.ts";
import { type FunctionRequest } from "./function-request.ts";
import { checkLength, hasBody, limited } from "./request-body.ts";
import { type Settings } from "./settings.ts";

/**
 * `fetch(request, env, ctx)` of the web: a `Request` whose body is a stream, `process.env`, and the
 * context with `waitUntil`. It answers with a `Response`, which is a stream too.
 */
export function fetchHandler(fetch: UserFunction, settings: Settings): FunctionHandler {
  return {
    body: "stream",
    call(request) {
      checkLength(request, settings.bodyLimitMb);
      const context = Object.assign(new Context(settings, request), {
        waitUntil: runInBackground,
        passThroughOnException: () => {},
      });
      return fetch(toWebRequest(request, settings), process.env, context);
    },
  };
}

export function toWebRequest(request: FunctionRequest, settings: Settings): Request {
  const { rawHeaders, headers } = request;
  const pairs: [string, string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2)
    pairs.push([rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""]);
  const scheme = headers["x-forwarded-proto"] === "https" ? "https" : request.protocol;
  const method = request.method ?? "GET";
  const withBody = method !== "GET" && method !== "HEAD" && hasBody(request);
  return new Request(urlOf(scheme, request), {
    method,
    headers: pairs,
    signal: request.signal,
    ...(withBody && {
      body: Readable.toWeb(Readable.from(limited(request, settings.bodyLimitMb))) as ReadableStream,
      duplex: "half",
    }),
  });
}

/** Also for what a client may send and no URL can hold: `//x`, or a Host that is none. */
function urlOf(scheme: string, request: FunctionRequest): string {
  const path = request.originalUrl.startsWith("/") ? request.originalUrl : "/";
  const url = `${scheme}://${request.headers.host ?? "localhost"}${path}`;
  return URL.canParse(url) ? url : `${scheme}://localhost${path}`;
}
