import { lookup } from "node:dns";
import http, { type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { type Agent as HttpsAgent } from "node:https";
import { type LookupFunction } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AddressRefusedError, type OutboundGuard } from "@spry/kube";
import { explainedFailure } from "./explained-failure.ts";
import { RegistryError } from "./registry-error.ts";

/**
 * Content that can be read again, for a retry. Small content is better given as bytes: it goes out
 * with the head of the request in one packet.
 */
export interface Body {
  size: number;
  open(): Uint8Array | AsyncIterable<Uint8Array>;
}

export interface HttpRequest {
  method: string;
  url: URL;
  headers?: OutgoingHttpHeaders;
  body?: Body | undefined;
  signal?: AbortSignal | undefined;
  /** Certificates (PEM) of a private authority to trust in addition to the public ones. */
  ca?: string | undefined;
  /** Which addresses are connected to. Connections are shared by requests with the same one. Default: all. */
  guard?: OutboundGuard | undefined;
}

/** No byte in either direction for so long means that the other side is gone. */
const idleTimeoutMs = 30_000;

const agentOptions = { keepAlive: true, maxSockets: 16, timeout: idleTimeoutMs };

/**
 * One HTTP exchange. `node:http` and not `fetch`: it loads in a third of the time, which is most of
 * what a small build takes. The caller must read or destroy the answer.
 */
export async function send(request: HttpRequest): Promise<IncomingMessage> {
  try {
    return await exchange(request);
  } catch (cause) {
    request.signal?.throwIfAborted();
    // The next attempt would have the same result.
    if (cause instanceof AddressRefusedError) throw cause;
    const { host } = request.url;
    throw new RegistryError(`${request.method} ${describeUrl(request.url)}`, {
      status: 0,
      host,
      cause: explainedFailure(cause, request.url),
    });
  }
}

async function exchange({
  method,
  url,
  headers,
  body,
  signal,
  ca,
  guard,
}: HttpRequest): Promise<IncomingMessage> {
  const secure = url.protocol === "https:";
  // TLS is only loaded where a registry needs it: a loopback registry never does.
  const transport = secure ? (await import("node:https")).default : http;
  const hostname = addressOf(url.hostname);
  const port = Number(url.port) || (secure ? 443 : 80);
  const byName = hostname.endsWith(".localhost") ? lookupLocalhost : undefined;
  const refusal = guard?.refusal(hostname, port);
  if (refusal) throw refusal;
  const content = body?.open();
  const outgoing = transport.request({
    method,
    protocol: url.protocol,
    hostname,
    port,
    path: url.pathname + url.search,
    headers: {
      host: url.host,
      "user-agent": "spry",
      ...headers,
      ...(body ? { "content-length": body.size } : {}),
    },
    agent: secure ? await secureAgent(ca, guard) : plainAgent(guard),
    ...(guard ? { lookup: guard.lookup(port, byName) } : byName && { lookup: byName }),
    ...(secure && url.hostname.endsWith("localhost") ? { servername: url.hostname } : {}),
    ...(signal ? { signal } : {}),
  });
  outgoing.setTimeout(idleTimeoutMs, () =>
    outgoing.destroy(new Error(`no answer within ${idleTimeoutMs / 1000} s`)),
  );
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once("response", resolve);
    outgoing.on("error", reject);
  });
  if (content === undefined || content instanceof Uint8Array) {
    outgoing.end(content);
    return answered;
  }
  // A registry may refuse before it has read everything: its answer counts, not the broken pipe.
  const sent = pipeline(Readable.from(content), outgoing);
  const [answer] = await Promise.all([answered, sent.catch(() => answered)]);
  return answer;
}

/** Connections that one guard has let through are not for requests of another. */
interface Agents {
  plain?: http.Agent;
  /** By authority: connections are kept, and must not be mistaken for each other. */
  secure: Map<string, HttpsAgent>;
}

const unguarded: Agents = { secure: new Map() };
const guardedAgents = new WeakMap<OutboundGuard, Agents>();

function agentsOf(guard: OutboundGuard | undefined): Agents {
  if (!guard) return unguarded;
  const known = guardedAgents.get(guard) ?? { secure: new Map() };
  guardedAgents.set(guard, known);
  return known;
}

function plainAgent(guard: OutboundGuard | undefined): http.Agent {
  return (agentsOf(guard).plain ??= new http.Agent(agentOptions));
}

async function secureAgent(ca: string | undefined, guard: OutboundGuard | undefined) {
  const agents = agentsOf(guard).secure;
  const known = agents.get(ca ?? "");
  if (known) return known;
  const [{ Agent }, { getCACertificates }] = await Promise.all([
    import("node:https"),
    import("node:tls"),
  ]);
  const agent = new Agent({
    ...agentOptions,
    ...(ca === undefined ? {} : { ca: [...getCACertificates(), ca] }),
  });
  agents.set(ca ?? "", agent);
  return agent;
}

function addressOf(hostname: string): string {
  if (/^localhost\.?$/.test(hostname)) return "127.0.0.1";
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/**
 * `*.localhost` is this machine by RFC 6761, even where the system's resolver does not know it. In a Pod with a
 * network of its own it is another address, which is in the Pod's `/etc/hosts`.
 */
const lookupLocalhost: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, family: 4 }, (error, address, family) => {
    if (!error) callback(null, address, family);
    else if (options.all) callback(null, [{ address: "127.0.0.1", family: 4 }]);
    else callback(null, "127.0.0.1", 4);
  });
};

/** Reads a whole answer, up to `limit` bytes. */
export async function readAll(answer: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) {
      answer.destroy();
      throw new Error(`the answer is larger than ${limit} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A URL for messages: queries may hold signatures of a storage service. */
export function describeUrl(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}
