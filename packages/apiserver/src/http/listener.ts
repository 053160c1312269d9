import { type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo } from "node:net";
import { type Duplex } from "node:stream";
import {
  boundConnections,
  connectionLimit,
  type Logger,
  messageOf,
  requestTurn,
  StatusError,
} from "@spry/kube";
import { type Authenticator } from "../authentication/authenticator.ts";
import { type HeaderList } from "../authentication/impersonation.ts";
import { type UserInfo } from "../request.ts";
import { type Dispatcher } from "./dispatcher.ts";
import { BodyTurns } from "./body-turns.ts";
import { type IncomingBody, readBody } from "./incoming-body.ts";
import { ownerOf } from "./owner.ts";
import { type MemoryBudget } from "./memory-budget.ts";
import { type HttpResponse, IncomingRequest } from "./message.ts";
import { sendAnswer } from "./outgoing-answer.ts";
import { type PodStream, podStreamPath } from "../streaming/pod-stream.ts";
import { type Passage, passOn, passUpgradeOn } from "../proxy/proxy.ts";
import { refuseUpgrade, serveUpgrade } from "../streaming/upgrade.ts";
import { errorResponse } from "./responses.ts";

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
const connectionLimits = {
  total: connectionLimit(10_000, 0.3),
  ofAddress: connectionLimit(8_000, 0.25),
};

/** What a listener hands requests to. */
interface Serving {
  dispatcher: Dispatcher;
  authenticator: Authenticator;
  /** Of all bodies under way, of all listeners. */
  bodies: MemoryBudget;
  /** Of all answers that have not been read yet. */
  answers: MemoryBudget;
}

/** Of all listeners. */
const turns = new BodyTurns();

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
  boundConnections(server, connectionLimits);
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
  const { owner, response } = await respond(serving, incoming, outgoing);
  return sendAnswer({ incoming, outgoing, answers: serving.answers, owner }, response);
}

async function respond(
  serving: Serving,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<{ owner: string; response: HttpResponse }> {
  let user: UserInfo | undefined;
  let body: IncomingBody;
  try {
    // No body is read before its sender is authenticated.
    user = await serving.authenticator.authenticate(incoming);
    body = await readBody(incoming, serving.bodies, user, turns);
    await requestTurn(ownerOf(user));
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    if (!user) turns.discard(incoming, "");
    return { owner: "", response: errorResponse(error) };
  }
  try {
    const request = new IncomingRequest(incoming, body.bytes, outgoing);
    const headers = impersonationHeaders(incoming);
    const response = await serving.dispatcher.handle(request, user, headers);
    return { owner: ownerOf(user), response };
  } finally {
    body.close();
  }
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
