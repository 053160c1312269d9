import * as http from "node:http";
import { type Socket } from "node:net";
import { brokenPath, countsPath, drainedPath } from "@spry/function";
import { boundConnections, type Clock, connectionLimit } from "@spry/kube";
import { type Admission } from "../admission/admission.ts";
import { admissionsPath, admissionsProtocol, gatewayHeader } from "../admission/witness.ts";
import { type PodsInUse } from "../activation/pods-in-use.ts";
import { type BrokenRequests } from "../attempt/broken-requests.ts";
import { type BearerAccess } from "./bearer-access.ts";
import { type Counts, type CountsWriter } from "./counts.ts";
import { type Existing, type GatewayMetrics } from "./gateway-metrics.ts";

/** A scaler that reads so slowly is disconnected. */
const maxUnreadBytes = 4 * 1024 ** 2;
/** For a request's whole head. */
const headTimeoutMs = 5_000;
const connectionLimits = {
  total: connectionLimit(2_000, 0.05),
  ofAddress: connectionLimit(1_000, 0.025),
};
/** What programs of this machine call a loopback address, a port aside. */
const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

const maxIdentityLength = 128;

interface Page {
  status: number;
  body: string;
}

export interface AdminServerDeps {
  metrics: GatewayMetrics;
  existing: Existing;
  /** Of what else is in the process: in the same format. */
  moreMetrics: (() => string) | undefined;
  counts: Counts;
  access: BearerAccess;
  /** Who may read the metrics; absent: every client that reaches the port. */
  metricsAccess: BearerAccess | undefined;
  ready: Promise<void>;
  pods: PodsInUse;
  broken: Pick<BrokenRequests, "take">;
  admission: Admission | undefined;
  clock: Clock;
}

/**
 * `/metrics`, `/healthz`, `/readyz`, `/counts`, `/drained` and `/broken`, for a port that is not public.
 * `isLoopback`: it has a loopback address, and other host names than that are refused: a web page could use them in a
 * browser of this machine (DNS rebinding).
 */
export function createAdminServer(deps: AdminServerDeps, isLoopback: boolean): http.Server {
  const { counts, access, ready } = deps;
  let isReady = false;
  void ready.then(() => (isReady = true));
  const options = {
    headersTimeout: headTimeoutMs,
    requestTimeout: headTimeoutMs,
    connectionsCheckingInterval: headTimeoutMs,
  };
  const server = http.createServer(options, (request, response) => {
    const { url = "", headers } = request;
    const send = ({ status, body }: Page) => {
      const challenge = status === 401 ? { "www-authenticate": "Bearer" } : {};
      response.writeHead(status, { "content-type": "text/plain; version=0.0.4", ...challenge });
      response.end(body);
    };
    if (isLoopback && !loopbackHost.test(headers.host ?? "")) return send(misdirected);
    const pod = podIn(url);
    const isPage = url !== countsPath && pod === undefined;
    const isOpen = isPage && url !== "/metrics";
    const guard = isPage ? deps.metricsAccess : access;
    if (isOpen || !guard) return send(pageOf(url, deps, isReady));
    const answer = async () => {
      const isAllowed = await guard.allows(headers.authorization);
      if (response.destroyed) return;
      if (!isAllowed) return send(isPage ? metricsUnauthorized : unauthorized);
      if (isPage) return send(pageOf(url, deps, isReady));
      if (pod === undefined) return streamCounts(counts, response);
      if (url.startsWith(brokenPath)) {
        const requests = await deps.broken.take(pod);
        if (!response.destroyed) send({ status: 200, body: `${JSON.stringify(requests)}\n` });
        return;
      }
      const left = new AbortController();
      response.once("close", () => left.abort());
      await deps.pods.drained(pod, deps.clock, left.signal);
      if (!response.destroyed) send({ status: 200, body: "drained\n" });
    };
    void answer();
  });
  server.on("upgrade", (request, socket: Socket) => void listenToAdmissions(deps, request, socket));
  boundConnections(server, connectionLimits);
  return server;
}

/** Another gateway wants to hear what is under way at Pods with hard limits. */
async function listenToAdmissions(
  { access, admission }: AdminServerDeps,
  { url, headers }: http.IncomingMessage,
  socket: Socket,
): Promise<void> {
  socket.on("error", () => socket.destroy());
  // Of a server, it would stay half open.
  socket.once("end", () => socket.destroy());
  const identity = headers[gatewayHeader];
  const isMeant = url === admissionsPath && headers.upgrade === admissionsProtocol;
  const isAllowed = isMeant && (await access.allows(headers.authorization));
  const end = (status: string) =>
    socket.resume().end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`);
  if (!isAllowed || typeof identity !== "string" || identity.length > maxIdentityLength)
    return void end(isMeant ? "401 Unauthorized" : "404 Not Found");
  const head = `upgrade: ${admissionsProtocol}\r\nconnection: Upgrade\r\n\r\n`;
  socket.setTimeout(0);
  if (admission?.mayListen !== true || socket.destroyed) return void end("503 Service Unavailable");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${head}`);
  admission.listen(identity, socket);
}

const misdirected: Page = {
  status: 421,
  body: "this address is called localhost, 127.0.0.1 or [::1], and has no other name\n",
};
const unauthorized: Page = {
  status: 401,
  body: `${countsPath} needs the header Authorization: Bearer, with the token that the platform gives its scaler\n`,
};

const metricsUnauthorized: Page = {
  status: 401,
  body: "/metrics needs the header Authorization: Bearer, with the token in the file metrics.token of the data directory\n",
};

/** Of `/drained?pod=10.0.0.7`, and of `/broken`. */
function podIn(url: string): string | undefined {
  const [path = "", query] = url.split("?", 2);
  if (![drainedPath, brokenPath].includes(path) || query === undefined) return undefined;
  return new URLSearchParams(query).get("pod") ?? undefined;
}

function pageOf(
  url: string,
  { metrics, existing, moreMetrics }: Pick<AdminServerDeps, "metrics" | "existing" | "moreMetrics">,
  isReady: boolean,
): Page {
  if (url === "/metrics")
    return { status: 200, body: `${metrics.render(existing)}${moreMetrics?.() ?? ""}` };
  if (url === "/healthz") return { status: 200, body: "ok\n" };
  if (url === "/readyz") {
    return { status: isReady ? 200 : 503, body: isReady ? "ok\n" : "waiting\n" };
  }
  const body = `not found: the paths are /metrics, /healthz, /readyz and ${countsPath}\n`;
  return { status: 404, body };
}

/** Lines of JSON for as long as the client listens (`CountsLine`). */
function streamCounts(counts: Counts, response: http.ServerResponse): void {
  const write: CountsWriter = (text) => {
    if (text === "") return true;
    response.write(text);
    if (response.writableLength <= maxUnreadBytes) return true;
    response.destroy();
    return false;
  };
  response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
  response.once("close", () => counts.unsubscribe(write));
  if (!counts.subscribe(write)) response.destroy();
}
