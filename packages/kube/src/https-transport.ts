import * as http from "node:http";
import * as https from "node:https";
import { Readable } from "node:stream";
import { type Clock, systemClock } from "./clock.ts";
import { type Credential, credentialsOf } from "./credentials.ts";
import { type ClusterConfig } from "./kubeconfig.ts";
import { type Transport } from "./transport.ts";

export type HttpsTransport = Transport & {
  /** Closes all connections, also those of requests under way. */
  close(): void;
};

export interface HttpsTransportOptions {
  clock?: Clock;
  /** Until the answer's headers; a watch has them at once and then streams. */
  headersTimeoutMs?: number;
}

const defaultHeadersTimeoutMs = 60_000;
const maxConnections = 256;
const agentOptions: http.AgentOptions = {
  keepAlive: true,
  maxSockets: maxConnections,
  // Connections that a middlebox has silently dropped, as it does under quiet watches, are found.
  keepAliveMsecs: 30_000,
};

/**
 * A transport over the network, with kept-alive connections. The answer's body is streamed, so that
 * a watch is seen line by line; aborting the request's signal ends it at any point.
 */
export function httpsTransport(
  config: ClusterConfig,
  options: HttpsTransportOptions = {},
): HttpsTransport {
  const server = new Server(config);
  const clock = options.clock ?? systemClock;
  const headersTimeoutMs = options.headersTimeoutMs ?? defaultHeadersTimeoutMs;
  const credentials = credentialsOf(config, clock);
  const ask = (request: Request, body: Buffer | undefined, credential: Credential) =>
    exchange(server.prepare(request, body, credential), clock, headersTimeoutMs);
  const send = async (request: Request): Promise<Response> => {
    const body = request.body ? Buffer.from(await request.arrayBuffer()) : undefined;
    const credential = await credentials.current();
    const response = await ask(request, body, credential);
    if (response.status !== 401 || !credentials.refused(credential)) return response;
    // The token may have been renewed since it was read: once more with what there is now.
    const renewed = await credentials.current();
    if (renewed.authorization === credential.authorization) return response;
    await response.body?.cancel();
    return ask(request, body, renewed);
  };
  return Object.assign(send, { close: () => server.close() });
}

interface Prepared {
  request: Request;
  body: Buffer | undefined;
  open: typeof http.request;
  options: http.RequestOptions;
}

/** Where requests go, and the connections there. A new client certificate needs new connections. */
class Server {
  readonly #config: ClusterConfig;
  readonly #host: string;
  readonly #port: string;
  readonly #prefix: string;
  readonly #secure: boolean;
  #agent: http.Agent | undefined;
  #certificate: string | undefined;

  constructor(config: ClusterConfig) {
    const url = new URL(config.server);
    this.#config = config;
    this.#secure = url.protocol === "https:";
    this.#host = url.hostname.replace(/^\[|\]$/g, "");
    this.#port = url.port || (this.#secure ? "443" : "80");
    this.#prefix = url.pathname.replace(/\/$/, "");
  }

  prepare(request: Request, body: Buffer | undefined, credential: Credential): Prepared {
    const url = new URL(request.url);
    const headers: http.OutgoingHttpHeaders = {
      ...Object.fromEntries(request.headers),
      ...impersonation(this.#config),
    };
    if (credential.authorization) headers.authorization ??= credential.authorization;
    if (body) headers["content-length"] = body.length;
    return {
      request,
      body,
      open: this.#secure ? https.request : http.request,
      options: {
        agent: this.#agentFor(credential),
        host: this.#host,
        port: this.#port,
        method: request.method,
        path: this.#prefix + url.pathname + url.search,
        headers,
      },
    };
  }

  close(): void {
    this.#agent?.destroy();
  }

  #agentFor({ clientCertificate, clientKey }: Credential): http.Agent {
    if (this.#agent && this.#certificate === clientCertificate) return this.#agent;
    // The old one's requests under way end by themselves; its idle connections time out.
    this.#certificate = clientCertificate;
    this.#agent = this.#secure
      ? new https.Agent({
          ...agentOptions,
          ...this.#tlsOptions(),
          ...(clientCertificate ? { cert: clientCertificate } : {}),
          ...(clientKey ? { key: clientKey } : {}),
        })
      : new http.Agent(agentOptions);
    return this.#agent;
  }

  #tlsOptions(): https.AgentOptions {
    const { certificateAuthority, insecureSkipTlsVerify, tlsServerName } = this.#config;
    const isAddress = /^[\d.]+$|:/.test(this.#host);
    return {
      ...(certificateAuthority ? { ca: certificateAuthority } : {}),
      rejectUnauthorized: insecureSkipTlsVerify !== true,
      // A client must not request an address as a server name (RFC 6066 section 3).
      servername: tlsServerName ?? (isAddress ? "" : this.#host),
      minVersion: "TLSv1.2",
    };
  }
}

function impersonation({ impersonate }: ClusterConfig): http.OutgoingHttpHeaders {
  if (!impersonate) return {};
  const headers: http.OutgoingHttpHeaders = { "impersonate-user": impersonate.user };
  if (impersonate.uid) headers["impersonate-uid"] = impersonate.uid;
  if (impersonate.groups) headers["impersonate-group"] = impersonate.groups;
  for (const [key, values] of Object.entries(impersonate.extra ?? {})) {
    headers[`impersonate-extra-${encodeURIComponent(key)}`] = values;
  }
  return headers;
}

function exchange(prepared: Prepared, clock: Clock, headersTimeoutMs: number): Promise<Response> {
  const { request, body, open, options } = prepared;
  request.signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const outgoing = open(options);
    const cancelTimeout = clock.after(headersTimeoutMs, () => {
      outgoing.destroy(new Error(`no response within ${headersTimeoutMs} ms`));
    });
    // `request` is held here until the end: its signal follows the caller's only while it lives.
    const abort = () => outgoing.destroy(request.signal.reason as Error);
    request.signal.addEventListener("abort", abort, { once: true });
    outgoing.once("close", () => {
      cancelTimeout();
      request.signal.removeEventListener("abort", abort);
    });
    outgoing.on("error", (cause) => {
      if (request.signal.aborted) return reject(request.signal.reason as Error);
      const [path] = (options.path ?? "").split("?");
      const where = `${options.host}:${options.port}${path}`;
      reject(new Error(`calling ${options.method} ${where}`, { cause }));
    });
    outgoing.once("response", (incoming) => {
      cancelTimeout();
      resolve(responseOf(incoming));
    });
    outgoing.end(body);
  });
}

function responseOf(incoming: http.IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headersDistinct)) {
    for (const each of value ?? []) headers.append(name, each);
  }
  const status = incoming.statusCode ?? 502;
  if (status === 204 || status === 205 || status === 304) {
    incoming.resume();
    return new Response(null, { status, headers });
  }
  return new Response(Readable.toWeb(incoming) as ReadableStream<Uint8Array>, { status, headers });
}
