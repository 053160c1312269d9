import { type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIPv6 } from "node:net";
import { type Container, type OutboundGuard, portOf as portOfUrl, type Probe } from "@spry/kube";

export type HttpGetAction = NonNullable<Probe["httpGet"]>;

export interface HttpGetTarget {
  ip: string;
  container: Container;
  /** Which addresses a `host` may lead to that the author has chosen; undefined where the Pod itself has the machine's network. */
  guard?: OutboundGuard | undefined;
}

/** As Go's HTTP client. */
const maxRedirects = 10;
/** What is read of a body before the answer counts: an endless one is an answer too. */
const maxBody = 10 * 1024;
const redirects = new Set([301, 302, 303, 307, 308]);

/**
 * One GET as the kubelet makes it (pkg/probe/http): certificates are not checked, no proxy is used, and redirects are
 * followed on the same host. Returns the status; for a redirect to another host, that of the redirect. `who` is the
 * first part of the user agent, `kube-probe` or `kube-lifecycle`. Throws with the words of a Go client when there is
 * no response in time.
 */
export async function httpGet(
  action: HttpGetAction,
  target: HttpGetTarget,
  { who, timeoutMs }: { who: string; timeoutMs: number },
): Promise<number> {
  const first = new URL(urlOf(action, target));
  const headers = headersOf(action, who);
  const signal = AbortSignal.timeout(timeoutMs);
  // The Pod's own address is where it is asked by default.
  const guard = (action.host ?? target.ip) === target.ip ? undefined : target.guard;
  let url = first;
  for (let hops = 0; hops < maxRedirects; hops++) {
    const { statusCode = 0, headers: answered } = await get(url, headers, signal, guard).catch(
      (error: Error) => {
        const why = signal.aborted ? "context deadline exceeded" : error.message;
        throw new Error(`Get "${url.href}": ${why}`);
      },
    );
    const { location } = answered;
    if (!redirects.has(statusCode) || !location) return statusCode;
    if (!URL.canParse(location, url.href))
      throw new Error(`Get "${url.href}": failed to parse Location header`);
    const next = new URL(location, url.href);
    const isNear = next.hostname === first.hostname && /^https?:$/.test(next.protocol);
    if (!isNear) return statusCode;
    url = next;
  }
  throw new Error(`Get "${url.href}": stopped after ${maxRedirects} redirects`);
}

function urlOf(action: HttpGetAction, { ip, container }: HttpGetTarget): string {
  const { path = "/", host = ip, scheme = "HTTP" } = action;
  const port = portOf(action.port, container);
  const name = isIPv6(host) ? `[${host}]` : host;
  return `${scheme.toLowerCase()}://${name}:${port}${path.startsWith("/") ? path : `/${path}`}`;
}

/** An empty `Accept` or `User-Agent` means none; a name given twice is sent twice. */
function headersOf({ httpHeaders = [] }: HttpGetAction, who: string): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (const { name, value = "" } of httpHeaders) (headers[name.toLowerCase()] ??= []).push(value);
  const defaults = { accept: "*/*", "user-agent": `${who}/spry` };
  for (const [name, value] of Object.entries(defaults)) {
    headers[name] ??= [value];
    if (headers[name][0] === "") delete headers[name];
  }
  return headers;
}

function get(
  url: URL,
  headers: Record<string, string[]>,
  signal: AbortSignal,
  guard: OutboundGuard | undefined,
): Promise<IncomingMessage> {
  const port = portOfUrl(url);
  const refused = guard?.refusal(url.hostname, port);
  if (refused) return Promise.reject(refused);
  const { host, ...others } = headers;
  const options = {
    headers: { ...others, ...(host && { host: host.at(-1) ?? "" }), connection: "close" },
    agent: false,
    signal,
    ...(guard && { lookup: guard.lookup(port) }),
    // A probe asks whether the process answers, not who signed its certificate.
    rejectUnauthorized: false,
  };
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const outgoing = send(url, options, (response) => {
      let length = 0;
      response.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length < maxBody) return;
        resolve(response);
        response.destroy();
      });
      response.once("error", reject);
      response.once("end", () => resolve(response));
    });
    outgoing.once("error", reject);
    outgoing.end();
  });
}

/** A port by number, or by its name in the container. Throws a kubelet's words when there is none. */
export function portOf(port: string | number, container: Container): number {
  if (typeof port === "number") return port;
  const named = container.ports?.find(({ name }) => name === port)?.containerPort ?? Number(port);
  if (!Number.isInteger(named) || named < 1 || named > 65_535)
    throw new Error(`couldn't find port: ${port}`);
  return named;
}
