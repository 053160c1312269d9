import { type IncomingMessage, type RequestListener } from "node:http";
import { type KubeClient, type Logger, messageOf, stringifyJson } from "@spry/kube";
import { type Queue, QueueFullError, QueueUnavailableError } from "@spry/queue";
import { bounds } from "../bounds.ts";
import { type CallAdministration } from "../calls/administration.ts";
import { NotAnEventError } from "../events/cloud-event.ts";
import { textOf } from "../events/http.ts";
import { type EventingMetrics } from "../metrics.ts";
import { type EventTraces } from "../tracing/event-traces.ts";
import { type Access, isAllowed, type User } from "./caller.ts";
import { Problem } from "./problem.ts";
import { routes } from "./routes.ts";

export interface AdminDeps {
  client: KubeClient;
  /** Undefined while there is none. */
  queue: () => Queue | undefined;
  calls: CallAdministration;
  /** Who sends a request; undefined when that is not known. */
  callerOf: (request: IncomingMessage) => Promise<User | undefined>;
  metrics: Pick<EventingMetrics, "accepted">;
  traces: EventTraces;
  /** Removes what is kept of an earlier namespace of this name. */
  claim?: (queue: Queue, namespace: string) => Promise<void>;
  log: Logger;
}

/** A request that has been routed, and is allowed. */
export interface AdminRequest {
  queue: Queue;
  calls: CallAdministration;
  namespace: string;
  name: string;
  id: string;
  query: URLSearchParams;
  /** Of JSON; an empty object without one. */
  body: Record<string, unknown>;
  /** The same as it was sent. */
  text: string;
  signal: AbortSignal;
  metrics: AdminDeps["metrics"];
  traces: EventTraces;
  /** Whether the caller may list events in the whole cluster. */
  mayReadAll: () => Promise<boolean>;
}

export interface AdminRoute {
  method: "GET" | "POST";
  /** Groups `namespace`, `name` and `id`. */
  path: RegExp;
  verb: string;
  resource: string;
  /** Undefined is 204. */
  handle(request: AdminRequest): Promise<unknown>;
}

/** An event in the JSON format, escapes included. */
const maxBodyBytes = 2 * bounds.eventBytes;
/** Requests for which the API server is asked at the same time who sends them. */
const maxAsking = 32;

/** Administration of events over HTTPS: docs/contributing/rooms/eventing.md lists the requests. */
export function createAdminHandler(deps: AdminDeps): RequestListener {
  const asking = { count: 0 };
  return (request, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const send = (status: number, value?: unknown) => {
      if (response.destroyed || response.headersSent) return;
      // Before the head is sent, so that a value that cannot be serialized, or exceeds a string's length, still becomes an error.
      const text = value === undefined ? undefined : `${stringifyJson(value)}\n`;
      const challenge = status === 401 ? { "www-authenticate": "Bearer" } : {};
      response.writeHead(status, {
        "content-type": "application/json",
        "cache-control": "no-store",
        ...challenge,
      });
      response.end(text);
    };
    answer(deps, request, gone.signal, asking)
      .then((value) => (value === undefined ? send(204) : send(200, value)))
      .catch((error: unknown) => {
        const status = statusOf(error);
        if (status === 500) deps.log.error({ error: messageOf(error) }, "administration of events");
        return send(status, failure(status, status === 500 ? "internal error" : messageOf(error)));
      })
      .catch(() => response.destroy());
  };
}

/** As the API server's own, which clients of Kubernetes can read. */
const failure = (code: number, message: string) => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message,
  code,
});

function statusOf(error: unknown): number {
  if (error instanceof Problem || error instanceof NotAnEventError) return error.status;
  if (error instanceof QueueFullError) return 507;
  return error instanceof QueueUnavailableError ? 503 : 500;
}

async function answer(
  { client, queue: current, calls, callerOf, metrics, traces, claim }: AdminDeps,
  request: IncomingMessage,
  signal: AbortSignal,
  asking: { count: number },
): Promise<unknown> {
  const { method = "GET", url = "/" } = request;
  if (!URL.canParse(url, "http://admin")) throw new Problem(400, "the path is not valid");
  const { pathname, searchParams: query } = new URL(url, "http://admin");
  const matching = routes.filter(({ path }) => path.test(pathname));
  const route = matching.find((each) => each.method === method);
  if (!route) {
    if (matching.length > 0) throw new Problem(405, `${method} is not supported here`);
    throw new Problem(404, "not found: docs/contributing/rooms/eventing.md lists the paths");
  }
  // Strangers, too, make the API server review their tokens.
  if (asking.count >= maxAsking) throw new Problem(503, "too many requests at once: retry later");
  asking.count++;
  const user = await callerOf(request).finally(() => asking.count--);
  if (!user)
    throw new Problem(401, "authentication is required: send a client certificate or a token");
  const { namespace, name, id = "" } = route.path.exec(pathname)?.groups ?? {};
  const { verb, resource } = route;
  const access: Access = {
    verb,
    resource,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
  if (!(await isAllowed(client, user, access))) {
    const where = namespace === undefined ? "in the cluster" : `in namespace ${namespace}`;
    throw new Problem(403, `${user.username} may not ${verb} ${resource} ${where}`);
  }
  const { body, text } = method === "POST" ? await bodyOf(request) : { body: {}, text: "{}" };
  const queue = current();
  if (!queue) throw new Problem(503, "the queue is not open yet: retry later");
  if (namespace !== undefined && resource === "calls") await claim?.(queue, namespace);
  return route.handle({
    queue,
    calls,
    namespace: namespace ?? "",
    name: name ?? "",
    id,
    query,
    body,
    text,
    signal,
    metrics,
    traces,
    mayReadAll: () => isAllowed(client, user, { verb: "list", resource: "events" }),
  });
}

async function bodyOf(
  request: IncomingMessage,
): Promise<{ body: Record<string, unknown>; text: string }> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBodyBytes)
      throw new Problem(413, `the body has more than ${maxBodyBytes} bytes`);
    chunks.push(chunk);
  }
  if (length === 0) return { body: {}, text: "{}" };
  const text = textOf(Buffer.concat(chunks));
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { body: value as Record<string, unknown>, text };
  } catch {
    // Said below.
  }
  throw new Problem(400, "the body is not a JSON object");
}
