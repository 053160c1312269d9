import { type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { messageOf, type Transport, transportOrigin } from "@spry/kube";
import { type BodyShare } from "./body-budget.ts";
import { hasBody, readBody, RequestError } from "./http.ts";
import { foreignHeaders } from "./security-headers.ts";

/** The largest object that an API server accepts, and a little for the rest of the request. */
const maxBodyBytes = 4 * 1024 ** 2;
const maxPathLength = 4096;
/** Other headers are not passed on: impersonation, for example, or what a proxy would trust. */
const requestHeaders = ["accept", "content-type"] as const;
const responseHeaders = ["content-type", "warning", "retry-after", "audit-id"] as const;

/**
 * Why a path is not passed on. Only paths of the API server are, in their plain spelling. What Pods and Services respond
 * through the API server (`…/proxy`) is not: it would be other people's pages on this origin.
 */
export function apiPathProblem(path: string): string | undefined {
  const [pathname = "", ...query] = path.split("?");
  const isPlain = path.length <= maxPathLength && /^[\x21-\x7e]+$/.test(path) && query.length <= 1;
  const segments = pathname.split("/").slice(1);
  const isApi = /^\/(?:api|apis|openapi|version)(?:\/|$)/.test(pathname);
  const isStraight = segments.every((segment) => /^(?:[\w.:~@!$&'()*+,;=-]|%3A)+$/.test(segment));
  if (!isPlain || !isApi || !isStraight || segments.some((each) => /^\.+$/.test(each)))
    return "this is not a path of the Kubernetes API";
  if (segments.some((each) => ["proxy", "exec", "attach", "portforward"].includes(each)))
    return "Pods and Services are not reached through the dashboard";
  return undefined;
}

/** Where the API server of a cluster has that administration. */
export const eventsApi = "/apis/eventing.spry.io";

/** Whether a path is one of the administration of events (docs/contributing/rooms/eventing.md#administration). */
export const isEventsPath = (path: string): boolean =>
  path.length <= maxPathLength &&
  /^\/v1\/(?:events|queue|namespaces(?:\/[\w-]+){2,6})(?:\?[\w=&%.:+-]*)?$/.test(path);

/** Passes a request to the API server as its user, and the response back as it arrives. */
export async function passToApiServer(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  { transport, share }: { transport: Transport; share: BodyShare },
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const { method = "GET" } = request;
  const headers = new Headers();
  for (const name of requestHeaders) {
    const value = request.headers[name];
    if (value !== undefined) headers.set(name, value);
  }
  const body = await readBody(request, maxBodyBytes, share);
  const answer = await transport(
    new Request(transportOrigin + path, {
      method,
      headers,
      signal: gone.signal,
      ...(hasBody(method, body) && { body: new Uint8Array(body) }),
    }),
  ).catch((error: unknown) => {
    if (gone.signal.aborted) return undefined;
    throw new RequestError(502, `the API server cannot be reached: ${messageOf(error)}`);
  });
  if (!answer) return;
  response.writeHead(answer.status, {
    ...foreignHeaders,
    ...Object.fromEntries(
      responseHeaders.flatMap((name) => {
        const value = answer.headers.get(name);
        return value === null ? [] : [[name, value]];
      }),
    ),
  });
  if (!answer.body) return void response.end();
  // When the client or the API server closes its connection, the other one is closed; no error can be reported any more.
  await pipeline(Readable.from(answer.body), response).catch(() => response.destroy());
}
