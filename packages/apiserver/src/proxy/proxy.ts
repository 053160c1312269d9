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
import { messageOf, StatusError } from "@spry/kube";
import { type PodPort, type ProxyTarget } from "./proxy-target.ts";

/** A request that is being proxied, with its target. */
export interface Passage {
  incoming: IncomingMessage;
  target: ProxyTarget;
  /** From `proxyPathOf`: the prefix of the target's own paths. */
  prefix: string;
  path: string;
}

/** Until the response begins; its body has no time limit. */
const headTimeoutMs = 600_000;
/** Until the protocol has been switched. */
const upgradeTimeoutMs = 20_000;

/** Hop-by-hop headers (RFC 9110 section 7.6.1), and those that are meant for the API server alone. */
const notPassedOn = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
  "authorization",
  "cookie",
  "expect",
]);

/**
 * Headers of a Pod's response, which has the API server's origin: its page must not act with the API's authority, nor leave
 * anything there, such as a cookie, that later requests would carry.
 */
const notPassedBack = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
  "trailer",
  "proxy-authenticate",
  "set-cookie",
  "set-cookie2",
  "clear-site-data",
  "service-worker-allowed",
  "strict-transport-security",
  "alt-svc",
  "refresh",
]);
const sandbox = "sandbox allow-scripts";

/** Passes the request on, and the response back as it comes. Throws a `StatusError` before there is one. */
export async function passOn(passage: Passage, outgoing: ServerResponse): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const { incoming, target } = passage;
  if (target.kind === "node") return answerOfNode(target, incoming, outgoing, gone.signal);
  const sent = await requestOf(passage, target, gone.signal);
  const arrived = responseTo(sent);
  // A body that the target no longer reads is not an error: the response says why.
  pipeline(incoming, sent).catch(() => {});
  const response = await arrived;
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
  const outcome = await Promise.race([changed, responseTo(sent, upgradeTimeoutMs)]);
  if (!Array.isArray(outcome)) {
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
  await Promise.allSettled([pipeline(socket, other), pipeline(other, socket)]);
}

/** A request on a separate connection to the Pod; the caller sends the body. */
async function requestOf(
  { incoming, prefix, path }: Passage,
  target: PodPort,
  signal: AbortSignal,
  more: IncomingHttpHeaders = {},
): Promise<ClientRequest> {
  const connection = await connectionTo(target, signal);
  const { host = "", "x-forwarded-for": before } = incoming.headers;
  const from = incoming.socket.remoteAddress ?? "";
  const headers = {
    ...passed(incoming.headers, notPassedOn),
    host,
    "x-forwarded-for": before === undefined ? from : `${String(before)}, ${from}`,
    "x-forwarded-host": host,
    "x-forwarded-proto": "https",
    "x-forwarded-uri": prefix,
    ...more,
  };
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

function responseTo(sent: ClientRequest, withinMs = headTimeoutMs): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      const message = `error trying to reach service: ${why}`;
      reject(new StatusError({ code: 503, reason: "ServiceUnavailable", message }));
      sent.destroy();
    };
    const timer = setTimeout(() => fail(`no response within ${withinMs / 1000} s`), withinMs);
    for (const event of ["response", "upgrade", "close"])
      sent.once(event, () => clearTimeout(timer));
    sent.once("response", resolve);
    sent.on("error", (error) => fail(messageOf(error)));
  });
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

type Headers = Record<string, string | string[] | undefined>;

function headersBack({ headers }: IncomingMessage, { prefix }: Passage): Headers {
  const { location, "content-security-policy": own, ...rest } = passed(headers, notPassedBack);
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

/** Without those, without those that `Connection` names, and without headers for impersonation. */
function passed(headers: IncomingHttpHeaders, without: ReadonlySet<string>): Headers {
  const named = new Set(
    (headers.connection ?? "")
      .toLowerCase()
      .split(",")
      .map((each) => each.trim()),
  );
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => !without.has(name) && !named.has(name) && !name.startsWith("impersonate-"),
    ),
  );
}

function headText(status: number, headers: Headers): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each) => `${name}: ${each}\r\n`),
  );
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n`;
}
