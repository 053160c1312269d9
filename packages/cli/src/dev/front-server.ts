/** The port that the user calls: passes each request on to the process that has the newest code. */
import { randomUUID } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect, type Socket } from "node:net";
import { type Duplex } from "node:stream";
import { type AllowedHosts, hostNameOf } from "./allowed-hosts.ts";
import { failurePage } from "./failure-page.ts";
import { type Failure } from "../load-failure.ts";
import { type AnsweredRequest } from "./output.ts";
import { type RuntimeProcess } from "./runtime-process.ts";
import { type Session } from "./session.ts";

/** Gets a line about each request that has been answered. */
export type OnRequest = (line: AnsweredRequest) => void;

/** Answers requests for `allowed` hosts, and WebSockets of pages of such hosts, only. */
export function createFrontServer(
  session: Session,
  onRequest: OnRequest,
  allowed: AllowedHosts,
): Server {
  const server = createServer((request, response) => {
    const begin = performance.now();
    response.once("close", () => {
      const { method = "", url = "" } = request;
      onRequest({ method, path: url, status: response.statusCode, ms: performance.now() - begin });
    });
    if (allowed.allows(request.headers.host)) void answer(request, response, session, true);
    else refuse(request, response);
  });
  // The Function has its own limit.
  server.requestTimeout = 0;
  server.on("upgrade", (request, socket, head) => {
    const { host, origin } = request.headers;
    if (!allowed.allows(host)) refuseUpgrade(socket, refusalOf(host));
    else if (!allowed.allowsOrigin(origin)) refuseUpgrade(socket, refusalOf(hostOfOrigin(origin)));
    else void upgrade(session, request, socket, head);
  });
  return server;
}

function refusalOf(host: string | undefined): string {
  const name = hostNameOf(host);
  const wayOut = name ? `: start it with --allow-host ${name} if they are yours` : "";
  return `spry dev does not answer requests for the host ${name ?? "that they name"}${wayOut}\n`;
}

const hostOfOrigin = (origin = ""): string | undefined =>
  URL.canParse(origin) ? new URL(origin).host : undefined;

function refuse(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  response.writeHead(403, { "content-type": "text/plain; charset=utf-8" });
  response.end(request.method === "HEAD" ? undefined : refusalOf(request.headers.host));
}

function refuseUpgrade(socket: Duplex, why: string): void {
  socket.on("error", () => {});
  const fields = `content-type: text/plain; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(why)}`;
  socket.end(`HTTP/1.1 403 Forbidden\r\nconnection: close\r\n${fields}\r\n\r\n${why}`);
}

const isFailure = (found: RuntimeProcess | Failure): found is Failure => "summary" in found;

/** By the process that has the newest code, or with what is wrong with that. */
async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  session: Session,
  mayRetry: boolean,
): Promise<void> {
  const found = await session.current();
  if (response.destroyed) return;
  if (isFailure(found)) sendFailure(request, response, found, 500);
  else forward(request, response, found, session, mayRetry);
}

function forward(
  request: IncomingMessage,
  response: ServerResponse,
  target: RuntimeProcess,
  session: Session,
  mayRetry: boolean,
): void {
  const leave = target.enter();
  response.once("close", leave);
  const { method, url: path, headers } = request;
  const passedOn = forwardedHeaders(request);
  const onward = httpRequest(
    {
      host: "127.0.0.1",
      port: target.port,
      agent: target.agent,
      method,
      path,
      setHost: false,
      headers: passedOn,
    },
    (answer) => {
      const requestId = String(passedOn["x-request-id"]);
      if (answer.statusCode === 500 && isBrowser(request))
        void explain(request, response, answer, session.thrownBy(target, requestId));
      else pass(answer, response);
    },
  );
  response.once("close", () => onward.destroy());
  onward.once("error", (error: NodeJS.ErrnoException) => {
    leave();
    if (response.headersSent || response.destroyed) return void response.destroy();
    const isRepeatable = headers["content-length"] === undefined && !headers["transfer-encoding"];
    if (mayRetry && isRepeatable && /^(?:GET|HEAD|OPTIONS)$/.test(method ?? "")) {
      void answer(request, response, session, false);
      return;
    }
    const summary = "the Function's process ended before it responded";
    sendFailure(request, response, { summary, details: error.message }, 502);
  });
  request.pipe(onward);
}

function pass(answer: IncomingMessage, response: ServerResponse): void {
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
  answer.pipe(response);
  answer.once("error", () => response.destroy());
}

/** What the handler threw in place of the runtime's answer, which does not say it; the answer of anything else as it is. */
async function explain(
  request: IncomingMessage,
  response: ServerResponse,
  answer: IncomingMessage,
  finding: Promise<Failure | undefined>,
): Promise<void> {
  const thrown = await finding;
  if (response.destroyed) return;
  if (!thrown) {
    pass(answer, response);
    return;
  }
  answer.resume();
  sendFailure(request, response, thrown, 500, false);
}

function forwardedHeaders({ headers, socket }: IncomingMessage): IncomingMessage["headers"] {
  return {
    ...headers,
    "x-forwarded-for": socket.remoteAddress ?? "127.0.0.1",
    "x-forwarded-proto": "http",
    ...(headers.host && { "x-forwarded-host": headers.host }),
    "x-request-id": headers["x-request-id"] ?? randomUUID(),
  };
}

const isBrowser = ({ headers }: IncomingMessage): boolean =>
  /\btext\/html\b/.test(headers.accept ?? "");

/** A page for browsers, JSON for everything else. `follows`: the page loads itself again once the code can be loaded. */
function sendFailure(
  request: IncomingMessage,
  response: ServerResponse,
  failure: Failure,
  status: number,
  follows = true,
): void {
  const isPage = isBrowser(request);
  const body = isPage
    ? failurePage(failure, follows)
    : `${JSON.stringify({ error: failure.summary, details: failure.details.split("\n") }, null, 2)}\n`;
  request.resume();
  response.writeHead(status, {
    "content-type": isPage ? "text/html; charset=utf-8" : "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

async function upgrade(
  session: Session,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const found = await session.current();
  if (isFailure(found))
    return void socket.end("HTTP/1.1 500 Internal Server Error\r\nconnection: close\r\n\r\n");
  const leave = found.enter();
  const onward: Socket = connect(found.port, "127.0.0.1", () => {
    const lines = [`${request.method} ${request.url} HTTP/1.1`];
    for (let i = 0; i < request.rawHeaders.length; i += 2)
      lines.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`);
    onward.write(`${lines.join("\r\n")}\r\n\r\n`);
    onward.write(head);
    socket.pipe(onward).pipe(socket);
  });
  const end = () => {
    leave();
    socket.destroy();
    onward.destroy();
  };
  for (const each of [socket, onward]) each.once("close", end).on("error", end);
}
