/**
 * Functions that are called as `node:http` calls its listeners: `(req, res[, next])`, as Vercel's, Connect's middleware and
 * `koa.callback()` are. They get Node.js' own request and response, with the members that Vercel adds.
 */
import { IncomingMessage, ServerResponse } from "node:http";
import { parameterNames } from "../dialects/parameter-names.ts";
import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { answered, type FunctionHandler, type UserFunction } from "../handler.ts";
import { parseQuery } from "../query.ts";
import { checkLength, parseBody } from "../request-body.ts";
import { type Settings } from "../settings.ts";

/** By what its source calls the parameters: those of other handlers are an event, a context or a body. */
export function isListener(found: unknown): found is UserFunction {
  const [first = "", second = ""] = parameterNames(found);
  return /^[_$]*req(?:uest)?$/i.test(first) && /^[_$]*res(?:p|ponse)?$/i.test(second);
}

export function listenerHandler(listener: UserFunction, settings: Settings): FunctionHandler {
  return {
    body: "typed",
    hasRoutes: true,
    call(request, response) {
      checkLength(request, settings.bodyLimitMb);
      const given = listenersRequest(request, response);
      Object.setPrototypeOf(response, ListenerResponse.prototype);
      return new Promise((resolve, reject) => {
        const next = (error?: unknown) => {
          if (error !== undefined && error !== null && error !== "route") return reject(error);
          if (!response.headersSent) response.writeHead(404, { "content-type": "text/plain" });
          response.end("Not Found");
        };
        const result = listener(given, response, next);
        Promise.resolve(result).then(() => resolve(answered(response)), reject);
      });
    },
  };
}

/** What the listener gets: the request itself, or a copy that can be read once more, as the body's text is known by now. */
function listenersRequest(request: FunctionRequest, response: FunctionResponse): ListenerRequest {
  const { rawBody } = request;
  // From here on it is read as a stream: an end that was held back arrives.
  request.on("close", () => {});
  const given = rawBody ? copyOf(request, rawBody) : request;
  for (const name of ["body", "rawBody", "res"]) Reflect.deleteProperty(given, name);
  Object.setPrototypeOf(given, ListenerRequest.prototype);
  // Express takes a query that is there for its own parser's, and replaces the prototype.
  settable(given, "query", () => parseQuery((given.url ?? "").split("?", 2)[1] ?? ""));
  if (rawBody) {
    let parsed: { value: unknown } | undefined;
    bodies.set(given, () => (parsed ??= { value: parseBody(rawBody, request) }).value);
    response.once("close", () => response.writableFinished || given.destroy());
  }
  return given as ListenerRequest;
}

function copyOf(request: FunctionRequest, bytes: Buffer): IncomingMessage {
  const { httpVersion, httpVersionMajor, httpVersionMinor, method, url, rawHeaders, headers } =
    request;
  const version = { httpVersion, httpVersionMajor, httpVersionMinor };
  const copy = new IncomingMessage(request.socket);
  Object.assign(copy, { ...version, method, url, rawHeaders, headers, complete: true });
  copy.push(bytes);
  copy.push(null);
  return copy;
}

const bodies = new WeakMap<object, () => unknown>();

/** An own member that is computed when it is asked for, and can be set. */
function settable(object: object, name: string, compute: () => unknown): void {
  const set = (value: unknown) =>
    Object.defineProperty(object, name, { value, configurable: true, writable: true });
  const get = () => {
    const value = compute();
    set(value);
    return value;
  };
  Object.defineProperty(object, name, { get, set, configurable: true, enumerable: true });
}

/** `req` of Vercel's Node.js functions. Frameworks that bring a request of their own replace the class. */
class ListenerRequest extends IncomingMessage {
  /** What JSON, a form or text means; fails with 400 if it is not valid. */
  get body(): unknown {
    return bodies.get(this)?.();
  }

  set body(value: unknown) {
    Object.defineProperty(this, "body", { value, configurable: true, writable: true });
  }

  get cookies(): Record<string, string> {
    const pairs = (this.headers.cookie ?? "").split(/; */).filter((each) => each.includes("="));
    return Object.fromEntries(
      pairs.map((each): [string, string] => {
        const [, name = "", text = ""] = /^([^=]*)=(.*)$/.exec(each) ?? [];
        return [name.trim(), decoded(text.trim())];
      }),
    );
  }

  set cookies(value: Record<string, string>) {
    Object.defineProperty(this, "cookies", { value, configurable: true, writable: true });
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `res` of Vercel's Node.js functions. */
class ListenerResponse extends ServerResponse {
  status(code: number): this {
    this.statusCode = code;
    return this;
  }

  json(value: unknown): this {
    if (!this.hasHeader("content-type"))
      this.setHeader("content-type", "application/json; charset=utf-8");
    return this.end(JSON.stringify(value));
  }

  send(body?: unknown): this {
    if (body instanceof Uint8Array) {
      if (!this.hasHeader("content-type"))
        this.setHeader("content-type", "application/octet-stream");
      return this.end(body);
    }
    if (typeof body === "object" && body !== null) return this.json(body);
    if (!this.hasHeader("content-type") && body !== undefined)
      this.setHeader("content-type", "text/html; charset=utf-8");
    return this.end(body === undefined || body === null ? "" : String(body));
  }

  redirect(first: string | number, second?: string): this {
    const [status, url] = typeof first === "number" ? [first, second ?? "/"] : [307, first];
    this.writeHead(status, { location: url });
    return this.end();
  }
}
