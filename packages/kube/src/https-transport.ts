import * as http from "node:http";
import * as https from "node:https";
import { Readable } from "node:stream";
import { type Clock, systemClock } from "./clock.ts";
import { type Credential, credentialsOf } from "./credentials.ts";
import { type ClusterConfig } from "./kubeconfig.ts";
import { type PlainResponse, type Transport, transportOf } from "./transport.ts";

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
  const attempt = <T>(message: Message, credential: Credential, read: Reader<T>) =>
    exchange(message, server.prepare(message, credential), { clock, headersTimeoutMs, read });
  const send = async <T extends { status: number }>(message: Message, read: Reader<T>) => {
    const credential = await credentials.current();
    const response = await attempt(message, credential, read);
    if (response.status !== 401 || !credentials.refused(credential)) return response;
    // The token may have been renewed since it was read: once more with what there is now.
    const renewed = await credentials.current();
    if (renewed.authorization === credential.authorization) return response;
    if (response instanceof Response) await response.body?.cancel();
    return attempt(message, renewed, read);
  };
  const transport = transportOf(
    async (request) => send(await messageOf(request), responseOf),
    (request) => send(request, wholeText),
  );
  return Object.assign(transport, { close: () => server.close() });
}

/** A request of either way. `signal` follows a `Request`'s caller only while that lives, so it is held, too. */
interface Message {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: string | Buffer | undefined;
  signal?: AbortSignal | undefined;
  held?: Request;
}

type Reader<T> = (incoming: http.IncomingMessage) => T | Promise<T>;

async function messageOf(request: Request): Promise<Message> {
  const { pathname, search } = new URL(request.url);
  return {
    method: request.method,
    path: pathname + search,
    headers: Object.fromEntries(request.headers),
    body: request.body ? Buffer.from(await request.arrayBuffer()) : undefined,
    signal: request.signal,
    held: request,
  };
}

interface Prepared {
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

  prepare({ method, path, headers: given, body }: Message, credential: Credential): Prepared {
    const headers: http.OutgoingHttpHeaders = { ...given, ...impersonation(this.#config) };
    if (credential.authorization) headers.authorization ??= credential.authorization;
    if (body !== undefined) headers["content-length"] = Buffer.byteLength(body);
    return {
      open: this.#secure ? https.request : http.request,
      options: {
        agent: this.#agentFor(credential),
        host: this.#host,
        port: this.#port,
        method,
        path: this.#prefix + path,
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

interface ExchangeOptions<T> {
  clock: Clock;
  headersTimeoutMs: number;
  read: Reader<T>;
}

function exchange<T>(
  message: Message,
  { open, options }: Prepared,
  { clock, headersTimeoutMs, read }: ExchangeOptions<T>,
): Promise<T> {
  message.signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const outgoing = open(options);
    const cancelTimeout = clock.after(headersTimeoutMs, () => {
      outgoing.destroy(new Error(`no response within ${headersTimeoutMs} ms`));
    });
    // `message` is held here until the end, and with it the request whose signal this is.
    const abort = () => outgoing.destroy(message.signal?.reason as Error);
    message.signal?.addEventListener("abort", abort, { once: true });
    outgoing.once("close", () => {
      cancelTimeout();
      message.signal?.removeEventListener("abort", abort);
    });
    const fail = (cause: unknown) => {
      if (message.signal?.aborted) return reject(message.signal.reason as Error);
      const [path] = (options.path ?? "").split("?");
      const where = `${options.host}:${options.port}${path}`;
      reject(new Error(`calling ${options.method} ${where}`, { cause }));
    };
    outgoing.on("error", fail);
    outgoing.once("response", (incoming) => {
      cancelTimeout();
      Promise.resolve(read(incoming)).then(resolve, fail);
    });
    outgoing.end(message.body);
  });
}

async function wholeText(incoming: http.IncomingMessage): Promise<PlainResponse> {
  incoming.setEncoding("utf8");
  let text = "";
  for await (const chunk of incoming as AsyncIterable<string>) text += chunk;
  return { status: incoming.statusCode ?? 502, text };
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
