import { type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { type Duplex, Readable } from "node:stream";
import { connectionLimit, type Logger, messageOf, StatusError } from "@spry/kube";
import { type Authenticator } from "../authentication/authenticator.ts";
import { type HeaderList } from "../authentication/impersonation.ts";
import { type UserInfo } from "../request.ts";
import { type Dispatcher } from "./dispatcher.ts";
import { ListText } from "./list-text.ts";
import { type HttpBody, type HttpResponse, IncomingRequest, PacedBody } from "./message.ts";
import { pumpInto } from "./pump.ts";
import { maxBodyBytes } from "./request-body.ts";
import { type PodStream, podStreamPath } from "../streaming/pod-stream.ts";
import { type Passage, passOn, passUpgradeOn } from "../proxy/proxy.ts";
import { refuseUpgrade, serveUpgrade } from "../streaming/upgrade.ts";
import { errorResponse } from "./responses.ts";
import { TextSource } from "./text-source.ts";

export interface ListenOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  /** PEM. */
  cert: string;
  key: string;
  /** PEM: whose certificates clients are known by. */
  clientCa: string;
}

export interface Listener {
  port: number;
  close(): Promise<void>;
}

const maxHeaderBytes = 64 * 1024;
const requestTimeoutMs = 60_000;
const maxConnections = connectionLimit(10_000, 0.3);

/** What a listener hands requests to. */
interface Serving {
  dispatcher: Dispatcher;
  authenticator: Authenticator;
}

/** Serves over HTTPS; a client's certificate or token says who it is. */
export async function listen(
  serving: Serving,
  { host, port, cert, key, clientCa }: ListenOptions,
  log: Logger,
): Promise<Listener> {
  const server = createServer(
    {
      cert,
      key,
      ca: clientCa,
      requestCert: true,
      // Without a certificate a client learns in a Status what it lacks.
      rejectUnauthorized: false,
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: requestTimeoutMs,
      headersTimeout: 30_000,
      keepAliveTimeout: 120_000,
      shouldUpgradeCallback: (incoming) =>
        podStreamPath.test(incoming.url ?? "") || isProxiedUpgrade(serving, incoming),
    },
    (incoming, outgoing) => {
      serve(serving, incoming, outgoing).catch((error: unknown) => {
        log.debug({ error: messageOf(error) }, "connection ended early");
        outgoing.destroy();
      });
    },
  );
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (incoming, socket, head) => {
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    if (isProxiedUpgrade(serving, incoming))
      void proxyUpgrade(serving, incoming, socket, head, log);
    else void serveUpgrade({ incoming, socket, head }, () => findStream(serving, incoming), log);
  });
  server.maxConnections = maxConnections;
  server.on("tlsClientError", (error) =>
    log.debug({ error: messageOf(error) }, "TLS handshake failed"),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  server.on("error", (error) => log.error({ error: messageOf(error) }, "listener failed"));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of upgraded) socket.destroy();
      }),
  };
}

async function serve(
  serving: Serving,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  if (serving.dispatcher.isPassedOn(incoming.url ?? ""))
    return proxyRequest(serving, incoming, outgoing);
  const { status, headers, body } = await respond(serving, incoming, outgoing);
  if (body instanceof PacedBody) {
    readPausably(incoming);
    outgoing.writeHead(status, headers);
    outgoing.flushHeaders();
    return pumpInto(outgoing, body.source, sliceBytes);
  }
  if (body instanceof ReadableStream) {
    readPausably(incoming);
    outgoing.writeHead(status, headers);
    outgoing.flushHeaders();
    await pipeline(Readable.fromWeb(body as never), outgoing);
    return;
  }
  const source = largeTextOf(body);
  if (source && incoming.method !== "HEAD") {
    readPausably(incoming);
    outgoing.writeHead(status, { ...headers, "content-length": source.length });
    return pumpInto(outgoing, source.text, sliceBytes);
  }
  const content = body instanceof ListText ? body.toBytes() : (body ?? "");
  const length = Buffer.byteLength(content);
  if (length >= incoming.socket.writableHighWaterMark) readPausably(incoming);
  outgoing.writeHead(status, { ...headers, "content-length": length });
  outgoing.end(incoming.method === "HEAD" ? undefined : content);
}

/** From here on an answer leaves in slices: what a client does not read is not kept encrypted for it. */
const largeBytes = 1024 * 1024;
/** One TLS record: all that a client who does not read holds in memory. */
const sliceBytes = 15 * 1024;

function largeTextOf(body: HttpBody): { length: number; text: TextSource } | undefined {
  const isList = body instanceof ListText;
  if (!isList && (typeof body !== "string" || body.length < largeBytes / 3)) return undefined;
  const length = isList ? body.byteLength() : Buffer.byteLength(body);
  if (length < largeBytes) return undefined;
  return { length, text: new TextSource(isList ? body.parts() : [body]) };
}

/**
 * The next request can come before Node.js knows that the response to this one has been sent; it then pauses its
 * parser, but a TLS socket keeps feeding it what has been decrypted already: "Parse Error: Paused", and the
 * connection is cut. A listener for data replaces that direct way from the socket to the parser by one that can be
 * paused.
 */
function readPausably({ socket }: IncomingMessage): void {
  if (!socket.listeners("data").includes(nothing)) socket.on("data", nothing);
}

const nothing = () => undefined;

async function respond(
  serving: Serving,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<HttpResponse> {
  let user: UserInfo;
  let body: Buffer | undefined;
  try {
    // No body is read before its sender is authenticated.
    user = await serving.authenticator.authenticate(incoming);
    body = await readBody(incoming);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return errorResponse(error);
  }
  const request = new IncomingRequest(incoming, body, outgoing);
  return serving.dispatcher.handle(request, user, impersonationHeaders(incoming));
}

/** A request with a body cannot change the protocol: it is passed on like any other. */
function isProxiedUpgrade({ dispatcher }: Serving, incoming: IncomingMessage): boolean {
  const { url = "", method, headers } = incoming;
  const hasBody =
    headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  return dispatcher.isPassedOn(url) && method === "GET" && !hasBody;
}

/** Streamed without a limit on its length: a Pod has its own limits. */
async function proxyRequest(
  serving: Serving,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  try {
    await passOn(await findPassage(serving, incoming), outgoing);
  } catch (error) {
    if (outgoing.headersSent || !(error instanceof StatusError)) throw error;
    const { status, headers, body } = errorResponse(error);
    outgoing.writeHead(status, headers).end(body);
    incoming.resume();
  }
}

async function proxyUpgrade(
  serving: Serving,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  log: Logger,
): Promise<void> {
  socket.on("error", (error) => log.debug({ error: messageOf(error) }, "stream ended early"));
  try {
    await passUpgradeOn(await findPassage(serving, incoming), socket, head);
  } catch (error) {
    refuseUpgrade(socket, error);
  }
}

async function findPassage(serving: Serving, incoming: IncomingMessage): Promise<Passage> {
  const user = await serving.authenticator.authenticate(incoming);
  const { prefix, path, target } = serving.dispatcher.proxy(
    new IncomingRequest(incoming),
    user,
    impersonationHeaders(incoming),
  );
  return { incoming, target, prefix, path };
}

async function findStream(serving: Serving, incoming: IncomingMessage): Promise<PodStream> {
  const user = await serving.authenticator.authenticate(incoming);
  return serving.dispatcher.stream(
    new IncomingRequest(incoming),
    user,
    impersonationHeaders(incoming),
  );
}

/** Those that ask for another user, which few requests have; values that came in several headers are apart. */
function impersonationHeaders(incoming: IncomingMessage): HeaderList {
  const isOne = (name: string) => name.startsWith("impersonate-");
  if (!Object.keys(incoming.headers).some(isOne)) return [];
  return Object.entries(incoming.headersDistinct)
    .filter(([name]) => isOne(name))
    .map(([name, values]) => [name, values ?? []]);
}

/**
 * A body that is too long is refused at once, and the rest of it thrown away as it comes: a client
 * that is still writing would not see an answer on a connection that is cut.
 */
function readBody(incoming: IncomingMessage): Promise<Buffer | undefined> {
  if (incoming.method === "GET" || incoming.method === "HEAD") return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    incoming.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBodyBytes) return void chunks.push(chunk);
      chunks = [];
      const message = `Request entity too large: limit is ${maxBodyBytes}`;
      reject(new StatusError({ code: 413, message }));
    });
    incoming.on("end", () => resolve(size > 0 ? Buffer.concat(chunks) : undefined));
    incoming.on("error", reject);
  });
}
