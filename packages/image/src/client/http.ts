import { lookup, type LookupAddress } from "node:dns";
import http, { type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { type Agent as HttpsAgent } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
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
  mayReach?: MayReach | undefined;
}

/**
 * Whether a request may connect to an address to which a host name leads (`hostname`: without brackets and port). The address
 * that was checked is the one that is connected to, and connections of other requests are not reused.
 */
export type MayReach = (address: string, hostname: string) => boolean;

/** No byte in either direction for so long means that the other side is gone. */
const idleTimeoutMs = 30_000;

const plainAgent = new http.Agent({ keepAlive: true, maxSockets: 16, timeout: idleTimeoutMs });

/**
 * One HTTP exchange. `node:http` and not `fetch`: it loads in a third of the time, which is most of
 * what a small build takes. The caller must read or destroy the answer.
 */
export async function send(request: HttpRequest): Promise<IncomingMessage> {
  try {
    return await exchange(request);
  } catch (cause) {
    request.signal?.throwIfAborted();
    throw new RegistryError(`${request.method} ${describeUrl(request.url)}`, { status: 0, cause });
  }
}

async function exchange({
  method,
  url,
  headers,
  body,
  signal,
  ca,
  mayReach,
}: HttpRequest): Promise<IncomingMessage> {
  const secure = url.protocol === "https:";
  // TLS is only loaded where a registry needs it: a loopback registry never does.
  const transport = secure ? (await import("node:https")).default : http;
  const hostname = addressOf(url.hostname);
  if (mayReach && isIP(hostname) && !mayReach(hostname, hostname)) throw internalAddress(hostname);
  const content = body?.open();
  const outgoing = transport.request({
    method,
    protocol: url.protocol,
    hostname,
    port: url.port || (secure ? 443 : 80),
    path: url.pathname + url.search,
    headers: {
      host: url.host,
      "user-agent": "spry",
      ...headers,
      ...(body ? { "content-length": body.size } : {}),
    },
    agent: secure ? await secureAgent(ca, mayReach !== undefined) : mayReach ? false : plainAgent,
    ...(hostname.endsWith(".localhost") ? { lookup: lookupLocalhost } : {}),
    ...(mayReach && { lookup: guarded(mayReach) }),
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

const secureAgents = new Map<string, HttpsAgent>();

/** One for each authority: connections are kept, and must not be mistaken for each other. */
async function secureAgent(ca: string | undefined, isAlone: boolean): Promise<HttpsAgent> {
  const known = isAlone ? undefined : secureAgents.get(ca ?? "");
  if (known) return known;
  const [{ Agent }, { getCACertificates }] = await Promise.all([
    import("node:https"),
    import("node:tls"),
  ]);
  const agent = new Agent({
    keepAlive: !isAlone,
    maxSockets: 16,
    timeout: idleTimeoutMs,
    ...(ca === undefined ? {} : { ca: [...getCACertificates(), ca] }),
  });
  if (!isAlone) secureAgents.set(ca ?? "", agent);
  return agent;
}

const internalAddress = (hostname: string) => new Error(`${hostname} leads to an internal address`);

/** Resolves a name to all of its addresses, and fails if one of them may not be reached. */
const guarded =
  (mayReach: MayReach): LookupFunction =>
  (hostname, options, callback) => {
    const resolve = hostname.endsWith(".localhost") ? lookupLocalhost : lookup;
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "");
      const addresses = found as LookupAddress[];
      const [first] = addresses;
      if (!first || addresses.some(({ address }) => !mayReach(address, hostname)))
        return callback(internalAddress(hostname), "");
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };

function addressOf(hostname: string): string {
  if (hostname === "localhost") return "127.0.0.1";
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
