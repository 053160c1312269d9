import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { Duplex, PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { connect } from "node:tls";
import { StatusError } from "@spry/kube";
import { isRedirection, redirectionRefused } from "../aggregation/aggregator.ts";
import { unavailable } from "../aggregation/backend.ts";
import { identityHeaders } from "../aggregation/identity-headers.ts";
import { type Headers, headersBackward, headersOnward } from "./headers.ts";
import { type ApiBackend, type PodPort, type ProxyTarget } from "./proxy-target.ts";
import { responseTo } from "./responses.ts";

/** A request that is being proxied, with its target. */
export interface Passage {
  incoming: IncomingMessage;
  target: ProxyTarget;
  /** From `proxyPathOf`: the prefix of the target's own paths. */
  prefix: string;
  path: string;
}

/** Until the protocol has been switched. */
const upgradeTimeoutMs = 20_000;

const sandbox = "sandbox allow-scripts";

/** Passes the request on, and the response back as it comes. Throws a `StatusError` before there is one. */
export async function passOn(passage: Passage, outgoing: ServerResponse): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const { incoming, target } = passage;
  if (target.kind === "node") return answerOfNode(target, incoming, outgoing, gone.signal);
  const sent = await requestOf(passage, target, gone.signal);
  const arrived = responseTo(sent, failureOf(target));
  // A body that the target no longer reads is not an error: the response says why.
  pipeline(incoming, sent).catch(() => {});
  const response = await arrived;
  refuseRedirection(target, response);
  outgoing.writeHead(response.statusCode ?? 502, headersBack(response, passage));
  outgoing.flushHeaders();
  await pipeline(response, outgoing);
}

/** The same for a connection that is to change its protocol: from then on bytes pass in both directions. */
export async function passUpgradeOn(passage: Passage, socket: Duplex, head: Buffer): Promise<void> {
  const { incoming, target } = passage;
  if (target.kind === "node")
    throw new StatusError({ code: 400, message: "nodes change no protocol" });
  const gone = new AbortController();
  socket.once("close", () => gone.abort());
  const sent = await requestOf(passage, target, gone.signal, {
    connection: "upgrade",
    upgrade: incoming.headers.upgrade,
  });
  sent.end();
  const changed = new Promise<[IncomingMessage, Duplex, Buffer]>((resolve) =>
    sent.once("upgrade", (...all) => resolve(all)),
  );
  const answered = responseTo(sent, failureOf(target), upgradeTimeoutMs);
  const outcome = await Promise.race([changed, answered]);
  if (!Array.isArray(outcome)) {
    refuseRedirection(target, outcome);
    const headers = { ...headersBack(outcome, passage), connection: "close" };
    socket.write(headText(outcome.statusCode ?? 502, headers));
    return pipeline(outcome, socket);
  }
  const [response, other, first] = outcome;
  const { connection = "upgrade", upgrade = "" } = response.headers;
  const changing = { connection, upgrade };
  socket.write(headText(101, { ...headersBack(response, passage), ...changing }));
  if (first.length > 0) socket.write(first);
  if (head.length > 0) other.write(head);
  // A pipeline in each direction listens for the same events of both.
  for (const each of [socket, other]) each.setMaxListeners(20);
  await Promise.allSettled([pipeline(socket, other), pipeline(other, socket)]);
}

/** A request on a separate connection to the Pod; the caller sends the body. */
async function requestOf(
  { incoming, prefix, path }: Passage,
  target: PodPort | ApiBackend,
  signal: AbortSignal,
  more: IncomingHttpHeaders = {},
): Promise<ClientRequest> {
  const { host = "", "x-forwarded-for": before } = incoming.headers;
  const from = incoming.socket.remoteAddress ?? "";
  const headers = {
    ...headersOnward(incoming.headers),
    host,
    "x-forwarded-for": before === undefined ? from : `${String(before)}, ${from}`,
    "x-forwarded-host": host,
    "x-forwarded-proto": "https",
    ...more,
  };
  if (target.kind === "server") {
    const { method = "GET" } = incoming;
    const isRepeatable = ["GET", "HEAD"].includes(method) && more.upgrade === undefined;
    const all = { ...headers, ...identityHeaders(target.user) };
    return target.backend.request({ method, path, headers: all, signal, isRepeatable });
  }
  Object.assign(headers, { "x-forwarded-uri": prefix });
  const connection = await connectionTo(target, signal);
  return httpRequest({
    createConnection: () => connection,
    method: incoming.method,
    path,
    headers,
    signal,
  });
}

async function connectionTo({ open, scheme }: PodPort, signal: AbortSignal): Promise<Duplex> {
  const outward = new PassThrough();
  const inward = await open(Readable.toWeb(outward) as never, signal);
  const plain = Duplex.from({ readable: Readable.fromWeb(inward as never), writable: outward });
  plain.on("error", () => {});
  if (scheme === "http") return plain;
  // As in Kubernetes, the certificate is not verified: the API server does not know which one to expect.
  const secure = connect({ socket: plain, rejectUnauthorized: false });
  secure.on("error", () => {});
  return secure;
}

function failureOf(target: PodPort | ApiBackend): (why: string) => StatusError {
  return (why) => {
    if (target.kind === "server") return unavailable(target.backend.name, why);
    const message = `error trying to reach service: ${why}`;
    return new StatusError({ code: 503, reason: "ServiceUnavailable", message });
  };
}

function refuseRedirection(target: ProxyTarget, response: IncomingMessage): void {
  if (target.kind !== "server" || !isRedirection(response)) return;
  response.destroy();
  throw redirectionRefused(target.backend.name);
}

async function answerOfNode(
  target: ProxyTarget & { kind: "node" },
  { method }: IncomingMessage,
  outgoing: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  if (method !== "GET" && method !== "HEAD")
    throw new StatusError({ code: 405, message: "nodes/proxy is for reading only" });
  const answer = await target.ask(signal);
  const type = answer.headers.get("content-type") ?? "text/plain; charset=utf-8";
  outgoing.writeHead(answer.status, { "content-type": type, "content-security-policy": sandbox });
  if (!answer.body || method === "HEAD") return void outgoing.end();
  await pipeline(Readable.fromWeb(answer.body as never), outgoing);
}

function headersBack({ headers }: IncomingMessage, { prefix, target }: Passage): Headers {
  if (target.kind === "server")
    return { ...headersBackward(headers), "x-content-type-options": "nosniff" };
  const { location, "content-security-policy": own, ...rest } = headersBackward(headers);
  const policies = own === undefined ? [sandbox] : [[own].flat().join(", "), sandbox];
  return {
    ...rest,
    ...(typeof location === "string" && {
      location:
        location.startsWith("/") && !location.startsWith("//") ? prefix + location : location,
    }),
    "content-security-policy": policies,
    "x-content-type-options": "nosniff",
  };
}

function headText(status: number, headers: Headers): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each) => `${name}: ${each}\r\n`),
  );
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n`;
}
