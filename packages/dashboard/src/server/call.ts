import * as http from "node:http";
import { type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Transport, transportOrigin } from "@spry/kube";
import { type BodyShare } from "./body-budget.ts";
import { assertReadable } from "./function-metrics.ts";
import { hasBody, readBody, RequestError } from "./http.ts";
import { foreignHeaders } from "./security-headers.ts";

/** What the request console sends: the first line of a body, before the Function's. */
interface Call {
  namespace: string;
  /** The Function's name. */
  name: string;
  method: string;
  /** Includes the query. */
  path: string;
  headers: [name: string, value: string][];
}

const maxHeadBytes = 64 * 1024;
const maxBodyBytes = 10 * 1024 ** 2;
const firstByteTimeoutMs = 310_000;
/** These belong to a connection, not to the request; `host` names the Function, and we set it. */
const notPassedOn =
  /^(?:connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

/** Headers that the API server would read itself: credentials and impersonation. It would not pass them on to the Function. */
const ofApiServer = /^(?:authorization|impersonate-.*|x-remote-.*)$/i;

/**
 * Calls a Function for the request console. The response is `{status, headers, …}` on a line, then the Function's body as it
 * arrives, as bytes: nothing that a Function answers (cookies, pages, scripts) becomes part of the dashboard's origin.
 */
export async function callFunction(
  request: IncomingMessage,
  response: ServerResponse,
  {
    transport,
    share,
    gateway,
  }: { transport: Transport; share: BodyShare; gateway: URL | undefined },
): Promise<void> {
  const all = await readBody(request, maxHeadBytes + maxBodyBytes, share);
  const end = all.indexOf("\n");
  const call = callOf(all.subarray(0, end < 0 ? all.length : end).toString("utf8"));
  const body = end < 0 ? Buffer.alloc(0) : all.subarray(end + 1);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  await assertReadable(call, transport, gone.signal);
  const begin = performance.now();
  const answer = gateway
    ? await throughGateway(call, body, gateway, gone.signal)
    : await throughApiServer(call, body, transport, gone.signal);
  response.writeHead(200, { ...foreignHeaders, "content-type": "application/octet-stream" });
  const { status, headers } = answer;
  const head = { status, headers, firstByteMs: performance.now() - begin };
  response.write(`${JSON.stringify(head)}\n`);
  await pipeline(answer.body, response).catch(() => response.destroy());
}

interface Answer {
  status: number;
  headers: [string, string][];
  body: Readable;
}

function throughGateway(
  call: Call,
  body: Buffer,
  gateway: URL,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = http.request({
      host: "127.0.0.1",
      port: gateway.port || 80,
      method: call.method,
      path: call.path,
      signal,
      headers: [
        ["host", `${call.name}.${call.namespace}.localhost`],
        ...call.headers,
        ...(body.length > 0 ? [["content-length", String(body.length)]] : []),
      ].flat(),
    });
    outgoing.setTimeout(firstByteTimeoutMs, () =>
      outgoing.destroy(new Error("no response in time")),
    );
    outgoing.on("response", (incoming) => {
      const { rawHeaders, statusCode = 502 } = incoming;
      const headers = rawHeaders.flatMap((name, index): [string, string][] =>
        index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ""]] : [],
      );
      resolve({ status: statusCode, headers, body: incoming });
    });
    outgoing.on("error", (error) =>
      reject(new RequestError(502, `the gateway cannot be reached: ${error.message}`)),
    );
    outgoing.end(body);
  });
}

async function throughApiServer(
  call: Call,
  body: Buffer,
  transport: Transport,
  signal: AbortSignal,
): Promise<Answer> {
  const service = `/api/v1/namespaces/${call.namespace}/services/${call.name}:80/proxy`;
  const answer = await transport(
    new Request(transportOrigin + service + call.path, {
      method: call.method,
      headers: call.headers.filter(([header]) => !ofApiServer.test(header)),
      signal,
      ...(hasBody(call.method, body) && { body: new Uint8Array(body) }),
    }),
  );
  return {
    status: answer.status,
    headers: [...answer.headers],
    body: Readable.from(answer.body ?? []),
  };
}

function callOf(text: string): Call {
  const { namespace, name, method, path, headers } = parsed(text);
  if (typeof namespace !== "string" || typeof name !== "string" || typeof path !== "string")
    throw new RequestError(400, "the call does not name a Function and a path");
  const problem = callTargetProblem({ namespace, name, path });
  if (problem !== undefined) throw new RequestError(400, problem);
  if (typeof method !== "string" || !/^[A-Z]{1,20}$/.test(method) || method === "CONNECT")
    throw new RequestError(400, "the method is not valid");
  if (!Array.isArray(headers) || headers.length > 100 || !headers.every(isHeader))
    throw new RequestError(400, "the headers are not valid");
  return {
    namespace,
    name,
    method,
    path,
    headers: headers.filter(([header]) => !notPassedOn.test(header)),
  };
}

/** Why this does not lead to a Function. `//host` and `/../` are refused, too: the path must stay within it. */
export function callTargetProblem({
  namespace,
  name,
  path,
}: Pick<Call, "namespace" | "name" | "path">): string | undefined {
  const isLabel = (value: string) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(value);
  if (!isLabel(namespace) || !isLabel(name)) return "the call does not name a Function";
  if (!/^\/(?!\/)[\x21-\x7e]*$/.test(path) || leavesRoot(path))
    return "the path must begin with / and contain no spaces and no ..";
  return undefined;
}

const leavesRoot = (path: string): boolean =>
  /(?:^|\/|\\)(?:\.|%2e){1,2}(?:\/|\\|%2f|%5c|$)/i.test(path.split("?", 1)[0] ?? "");

function isHeader(value: unknown): value is [string, string] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [name, text] = value as unknown[];
  return (
    typeof name === "string" &&
    typeof text === "string" &&
    /^[\w!#$%&'*+.^`|~-]{1,256}$/.test(name) &&
    /^[\t\x20-\x7e\x80-\xff]{0,8192}$/.test(text)
  );
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text.slice(0, maxHeadBytes));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Reported below.
  }
  throw new RequestError(400, "the call's first line must be a JSON object");
}
