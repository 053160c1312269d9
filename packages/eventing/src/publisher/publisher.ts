import * as http from "node:http";
import { MemoryBudget } from "@spry/gateway";
import { boundConnections, type Logger, messageOf, requestTurn } from "@spry/kube";
import { type Queue, QueueFullError, QueueUnavailableError } from "@spry/queue";
import { bounds } from "../bounds.ts";
import { NotAnEventError } from "../events/cloud-event.ts";
import { eventsOf, maxBodyBytes } from "../events/http.ts";
import { legacyApplication, legacyEvent, tooLarge } from "../events/legacy.ts";
import { type EventingMetrics } from "../metrics.ts";
import { type EventTraces } from "../tracing/event-traces.ts";
import { accept } from "./accept.ts";

export interface PublisherDeps {
  /** Undefined while there is none. */
  queue: () => Queue | undefined;
  metrics: EventingMetrics;
  /** Without them nothing is traced. */
  traces?: EventTraces;
  log: Logger;
}

const headTimeoutMs = 10_000;
const requestTimeoutMs = 60_000;
const keepAliveMs = 65_000;

/** Accepts events: 204 says that they are durable, each other status that they are not. */
export function createPublisher(dependencies: PublisherDeps): http.Server {
  const deps = { ...dependencies, budget: new MemoryBudget(bounds.publisherBytes) };
  const server = http.createServer(
    {
      headersTimeout: headTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: headTimeoutMs,
      keepAliveTimeout: keepAliveMs,
      maxHeaderSize: 32 * 1024,
    },
    (request, response) => {
      answer(deps, request, response).catch((error: unknown) => {
        // A client that disconnects is not our error.
        if (!request.destroyed || request.complete)
          deps.log.error({ error: messageOf(error) }, "accepting an event");
        response.destroy();
      });
    },
  );
  boundConnections(server, { total: bounds.connections, ofAddress: bounds.connectionsOfAddress });
  return server;
}

interface Deps extends PublisherDeps {
  budget: MemoryBudget;
}

async function answer(
  deps: Deps,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const { method, url = "/" } = request;
  const [path = "/"] = url.split("?");
  const send = (status: number, body = "", type = "text/plain; charset=utf-8") => {
    if (response.headersSent || response.destroyed) return;
    // The rest of a refused body is not read.
    if (!request.complete) response.setHeader("connection", "close");
    if (status === 503) response.setHeader("retry-after", "1");
    response.writeHead(status, body === "" ? {} : { "content-type": type });
    response.end(body);
  };
  if (path === "/healthz") return send(200, "ok\n");
  if (path === "/readyz") return (await isReady(deps)) ? send(200, "ok\n") : send(503, "waiting\n");
  const legacy = legacyOf(path);
  if (path !== "/publish" && legacy === undefined)
    return send(404, "events are published by POST /publish\n");
  if (method !== "POST") {
    response.setHeader("allow", "POST");
    return send(405, "events are published with POST\n");
  }
  // A page of any site can make a browser send requests here; browsers name the site in the request.
  if (request.headers.origin !== undefined)
    return send(403, "events are not accepted from web pages\n");
  const publish = legacy === undefined ? publishEvents : publishLegacy(legacy);
  const { status, body = "", type } = await publish(deps, request);
  send(status, body, type);
}

/** Whether the queue answers: it may have been lost since it was opened. */
async function isReady({ queue }: PublisherDeps): Promise<boolean> {
  const answer = queue()?.head();
  if (!answer) return false;
  return answer.then(
    () => true,
    () => false,
  );
}

function legacyOf(path: string): string | undefined {
  try {
    return legacyApplication(path);
  } catch {
    return undefined;
  }
}

interface Answer {
  status: number;
  body?: string;
  type?: string;
}

async function publishEvents(
  { queue, metrics, traces, budget }: Deps,
  request: http.IncomingMessage,
): Promise<Answer> {
  try {
    const limit = maxBodyBytes(request.headers);
    return await withBody(request, limit, budget, async (body) => {
      if (!body) throw new NotAnEventError(`the body has more than ${limit} bytes`, 413);
      await requestTurn(`publisher ${request.socket.remoteAddress}`);
      const events = eventsOf(request.headers, body);
      await accept(queue(), events, traces);
      metrics.accepted(events.length);
      return { status: 204 };
    });
  } catch (error) {
    const refusal = refusalOf(error);
    metrics.refused(refusal.status);
    return { status: refusal.status, body: `${refusal.message}\n` };
  }
}

/** As the original answers: 200 with the id, or an error object. */
const publishLegacy =
  (application: string) =>
  async (
    { queue, metrics, traces, budget }: Deps,
    request: http.IncomingMessage,
  ): Promise<Answer> => {
    const json = (status: number, value: unknown): Answer => ({
      status,
      body: `${JSON.stringify(value)}\n`,
      type: "application/json",
    });
    try {
      return await withBody(request, bounds.eventBytes, budget, async (body) => {
        const event = body ? legacyEvent(application, body) : tooLarge;
        if ("status" in event) {
          metrics.refused(event.status);
          return json(event.status, event);
        }
        await accept(queue(), [event], traces);
        metrics.accepted(1);
        return json(200, { "event-id": event.attributes["id"] });
      });
    } catch (error) {
      const { status, message } = refusalOf(error);
      metrics.refused(status);
      return json(status, { status, message, moreInfo: "", details: [] });
    }
  };

function refusalOf(error: unknown): { status: number; message: string } {
  const message = messageOf(error);
  if (error instanceof NotAnEventError) return { status: error.status, message };
  if (error instanceof QueueFullError) return { status: 507, message };
  if (error instanceof QueueUnavailableError)
    return { status: 503, message: "events cannot be accepted at present: retry later" };
  throw error;
}

/**
 * Does the work with the request's body, whose memory counts towards the budget until then; undefined when the body exceeds
 * the limit. Rejects when the client disconnects.
 * @throws QueueUnavailableError when the memory is used up, by all clients or by this address
 */
async function withBody<T>(
  request: http.IncomingMessage,
  limit: number,
  budget: MemoryBudget,
  work: (body: Buffer | undefined) => Promise<T>,
): Promise<T> {
  if (Number(request.headers["content-length"] ?? 0) > limit) return work(undefined);
  const owner = request.socket.remoteAddress ?? "";
  let taken = 0;
  const take = (bytes: number) => {
    if (!budget.take(owner, bytes))
      throw new QueueUnavailableError("too many events are being published at present");
    taken += bytes;
  };
  try {
    return await work(await bodyOf(request, limit, take));
  } finally {
    budget.give(owner, taken);
  }
}

/** By its events: iterating over the stream takes longer than all the rest of a small request. `take` may throw. */
function bodyOf(
  request: http.IncomingMessage,
  limit: number,
  take: (bytes: number) => void,
): Promise<Buffer | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | undefined>();
  const chunks: Buffer[] = [];
  let length = 0;
  const onData = (chunk: Buffer) => {
    length += chunk.length;
    try {
      if (length <= limit) {
        take(chunk.length);
        chunks.push(chunk);
        return;
      }
      resolve(undefined);
    } catch (error) {
      reject(error);
    }
    request.off("data", onData).pause();
  };
  request.on("data", onData);
  request.once("end", () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
  request.once("error", reject);
  request.once("close", () => reject(new Error("the client has disconnected")));
  return promise;
}
