import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { Readable } from "node:stream";
import { type ClusterConfig } from "./kubeconfig.ts";
import { type Transport } from "./transport.ts";

export type HttpsTransport = Transport & {
  /** Closes idle connections; requests under way end by their own signals. */
  close(): void;
};

/** Until the first byte of the answer; watches answer at once and then stream. */
const headersTimeoutMs = 60_000;
const connectTimeoutMs = 15_000;
const maxConnections = 256;
/** How long a token read from its file is used: kubelet rotates well before the old one expires. */
const tokenFileLifetimeMs = 60_000;

/**
 * A transport over the network, with kept-alive connections. The answer's body is streamed, so
 * that a watch is seen line by line; aborting the request's signal ends it at any point.
 */
export function httpsTransport(config: ClusterConfig): HttpsTransport {
  const base = new URL(config.server);
  const secure = base.protocol === "https:";
  const agent = secure
    ? new https.Agent({ ...agentOptions, ...tlsOptions(config, base) })
    : new http.Agent(agentOptions);
  const authorization = authorizationOf(config);
  const send = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const headers: http.OutgoingHttpHeaders = Object.fromEntries(request.headers);
    const value = authorization();
    if (value !== undefined) headers.authorization ??= value;
    addImpersonation(headers, config);
    const body = request.body ? Buffer.from(await request.arrayBuffer()) : undefined;
    if (body) headers["content-length"] = body.length;
    return exchange(request, body, secure ? https.request : http.request, {
      agent,
      host: base.hostname.replace(/^\[|\]$/g, ""),
      port: base.port || (secure ? 443 : 80),
      method: request.method,
      path: base.pathname.replace(/\/$/, "") + url.pathname + url.search,
      headers,
    });
  };
  return Object.assign(send, { close: () => agent.destroy() });
}

const agentOptions: https.AgentOptions = {
  keepAlive: true,
  maxSockets: maxConnections,
  // Idle connections that a middlebox has silently dropped are found by probes.
  keepAliveMsecs: 30_000,
};

function tlsOptions(config: ClusterConfig, base: URL): https.AgentOptions {
  const host = base.hostname.replace(/^\[|\]$/g, "");
  return {
    ...(config.certificateAuthority ? { ca: config.certificateAuthority } : {}),
    ...(config.clientCertificate ? { cert: config.clientCertificate } : {}),
    ...(config.clientKey ? { key: config.clientKey } : {}),
    rejectUnauthorized: config.insecureSkipTlsVerify !== true,
    servername: config.tlsServerName ?? (/^[\d.]+$|:/.test(host) ? "" : host),
    minVersion: "TLSv1.2",
  };
}

/** The `Authorization` header as it is now. */
function authorizationOf(config: ClusterConfig): () => string | undefined {
  const { tokenFile, token, username, password } = config;
  if (tokenFile) {
    let read = { at: -Infinity, token: "" };
    return () => {
      if (Date.now() - read.at > tokenFileLifetimeMs) {
        read = { at: Date.now(), token: readFileSync(tokenFile, "utf8").trim() };
      }
      return `Bearer ${read.token}`;
    };
  }
  if (token) return () => `Bearer ${token}`;
  if (username !== undefined) {
    const basic = Buffer.from(`${username}:${password ?? ""}`).toString("base64");
    return () => `Basic ${basic}`;
  }
  return () => undefined;
}

function addImpersonation(headers: http.OutgoingHttpHeaders, { impersonate }: ClusterConfig): void {
  if (!impersonate) return;
  headers["impersonate-user"] = impersonate.user;
  if (impersonate.uid) headers["impersonate-uid"] = impersonate.uid;
  if (impersonate.groups) headers["impersonate-group"] = impersonate.groups;
  for (const [key, values] of Object.entries(impersonate.extra ?? {})) {
    headers[`impersonate-extra-${encodeURIComponent(key)}`] = values;
  }
}

function exchange(
  request: Request,
  body: Buffer | undefined,
  open: typeof http.request,
  options: http.RequestOptions,
): Promise<Response> {
  const { signal } = request;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const outgoing = open(options);
    // `request` is held on purpose until the end: its signal only follows the caller's while it lives.
    const abort = () => outgoing.destroy(request.signal.reason as Error);
    const release = () => request.signal.removeEventListener("abort", abort);
    const timeoutError = new Error(`no answer within ${headersTimeoutMs} ms`);
    const timer = setTimeout(() => outgoing.destroy(timeoutError), headersTimeoutMs);
    signal.addEventListener("abort", abort, { once: true });
    outgoing.once("close", release);
    outgoing.once("error", (cause) => {
      clearTimeout(timer);
      if (signal.aborted) reject(signal.reason as Error);
      else reject(new Error(`calling ${options.method} ${where(options)}`, { cause }));
    });
    outgoing.once("response", (incoming) => {
      clearTimeout(timer);
      resolve(responseOf(incoming));
    });
    outgoing.setTimeout(connectTimeoutMs, () => {
      if (outgoing.socket?.connecting) outgoing.destroy(new Error("connecting took too long"));
    });
    outgoing.end(body);
  });
}

function where(options: http.RequestOptions): string {
  return `${options.host}:${options.port}${options.path?.split("?")[0]}`;
}

function responseOf(incoming: http.IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    for (const each of Array.isArray(value) ? value : [value ?? ""]) headers.append(name, each);
  }
  const status = incoming.statusCode ?? 502;
  const empty = status === 204 || status === 205 || status === 304;
  if (empty) incoming.resume();
  const stream = empty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  return new Response(stream, { status, headers });
}
