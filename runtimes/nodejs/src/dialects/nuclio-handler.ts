import { randomUUID } from "node:crypto";
import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { type FunctionHandler, isThenable, type UserFunction } from "../handler.ts";

/**
 * `handler(context, event)` of Nuclio, which answers by `context.callback`; what it returns counts too.
 * `initContext(context)` is called before the first request.
 */
export function nuclioHandler(handler: UserFunction, initContext?: UserFunction): FunctionHandler {
  const shared = new Context();
  return {
    body: "raw",
    start: () => initContext?.(shared),
    async call(request, response) {
      const answer = await new Promise((resolve, reject) => {
        const returned = handler(shared.ofCall(resolve), eventOf(request));
        // Who returns nothing will call back.
        const orCalled = (value: unknown) => value !== undefined && resolve(value);
        if (isThenable(returned)) returned.then(orCalled, reject);
        else orCalled(returned);
      });
      return applyAnswer(response, answer);
    },
  };
}

/** `new context.Response(body, headers, contentType, statusCode)`; its members may be set, too. */
class Response {
  body: unknown;
  headers: Record<string, unknown> | null;
  content_type: string;
  status_code: number;

  constructor(
    body: unknown = null,
    headers: Record<string, unknown> | null = null,
    contentType = "text/plain",
    statusCode = 200,
  ) {
    this.body = body;
    this.headers = headers;
    this.content_type = contentType;
    this.status_code = statusCode;
  }
}

/** One for the process, `userData` being what its calls share, and one of each call, with the callback. */
class Context {
  readonly Response = Response;
  readonly logger = logger;
  readonly worker_id = 0;
  readonly trigger = trigger;
  callback: (answer?: unknown) => void = () => {};
  #shared: { userData: unknown } = { userData: {} };

  ofCall(callback: (answer?: unknown) => void): Context {
    const context = new Context();
    context.#shared = this.#shared;
    context.callback = callback;
    return context;
  }

  get userData(): unknown {
    return this.#shared.userData;
  }

  set userData(value: unknown) {
    this.#shared.userData = value;
  }
}

const trigger = { kind: "http", name: "default-http" };

/** `infoWith(text, data)` and the like. */
const logger = {
  debug: console.debug,
  info: console.info,
  warn: console.warn,
  error: console.error,
  debugWith: console.debug,
  infoWith: console.info,
  warnWith: console.warn,
  errorWith: console.error,
};

function eventOf(request: FunctionRequest) {
  const { path, originalUrl: url, method, rawBody: body = Buffer.alloc(0) } = request;
  const contentType = request.headers["content-type"] ?? "";
  return {
    id: randomUUID(),
    body,
    content_type: contentType,
    "content-type": contentType,
    trigger,
    fields: Object.fromEntries(new URLSearchParams(url.slice(path.length + 1))),
    headers: headersOf(request),
    method,
    path: decoded(path),
    size: body.length,
    timestamp: new Date(),
    url,
    shard_id: 0,
    num_shards: 0,
    type: "",
    type_version: "",
    version: "",
    offset: 0,
    topic: "",
  };
}

/** Their names begin with capitals. */
function headersOf({ headers }: FunctionRequest): Record<string, string> {
  const capital = (name: string) => name.replaceAll(/\b[a-z]/g, (sign) => sign.toUpperCase());
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [capital(name), String(value)]),
  );
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Text, bytes, `[status, body]`, a `Response`; anything else is JSON. */
function applyAnswer(response: FunctionResponse, answer: unknown): unknown {
  if (answer instanceof Response) {
    response.status(answer.status_code).set("content-type", answer.content_type);
    for (const [name, value] of Object.entries(answer.headers ?? {}))
      // Handlers hand the request's headers back; these were about its own body and connection.
      if (!ofConnection.has(name.toLowerCase())) response.set(name, String(value));
    return body(response, answer.body ?? "");
  }
  response.set("content-type", "text/plain");
  if (!Array.isArray(answer) || answer.length !== 2 || typeof answer[0] !== "number")
    return body(response, answer);
  response.status(answer[0]);
  return body(response, answer[1]);
}

const ofConnection = new Set([
  "connection",
  "content-length",
  "content-type",
  "host",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

function body(response: FunctionResponse, content: unknown): unknown {
  if (typeof content === "string" || content instanceof Uint8Array) return content;
  if (content === undefined) return "";
  response.set("content-type", "application/json");
  return JSON.stringify(content);
}
