import {
  type CallAcceptor,
  callsPath,
  type ClientRequest,
  type ClientResponse,
  type WaitingCall,
} from "@spry/gateway";
import { type Clock, type Logger, messageOf } from "@spry/kube";
import { type Queue, QueueFullError } from "@spry/queue";
import { Problem } from "../admin/problem.ts";
import { type Call, callBucket } from "./call.ts";
import { type CallRunner } from "./runner.ts";
import { type NamespaceClaims } from "./namespace-claims.ts";
import { readCall } from "./read-request.ts";
import { type CallSubmitter } from "./submit.ts";
import { withWait } from "./waits.ts";

export interface AcceptorDeps {
  queue: () => Queue | undefined;
  submitter: CallSubmitter;
  claims: NamespaceClaims;
  /** Undefined while calls are not made. */
  runner: () => Pick<CallRunner, "ensure"> | undefined;
  clock: Clock;
  log: Logger;
}

/** The id as clients know it: with the namespace, which says where the call is kept. */
const publicId = (namespace: string, id: string) => `${namespace}.${id}`;
const publicIdPattern = /^([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\.([0-9a-z]{9,12}-[0-9a-f]{32})$/;

/** Accepts calls for the gateway, and reports what became of them. */
export function createCallAcceptor(deps: AcceptorDeps): CallAcceptor {
  return {
    async accept(call) {
      await respond(call, deps.log, async () => {
        const queue = deps.queue();
        const runner = deps.runner();
        if (!queue || !runner)
          throw new Problem(503, "asynchronous calls cannot be accepted at present: retry later");
        const submission = await readCall(call);
        await deps.claims.claim(queue, submission.namespace);
        await runner.ensure(call.key);
        const id = publicId(submission.namespace, await deps.submitter.submit(queue, submission));
        call.response
          .writeHead(202, {
            location: locationOf(call, id),
            "preference-applied": "respond-async",
            "x-call-id": id,
            "content-type": "application/json",
            "cache-control": "no-store",
          })
          .end(`${JSON.stringify({ id, state: "waiting" })}\n`);
      });
    },
    async report(id, request, response, isPublic) {
      await respond({ request, response }, deps.log, async () => {
        const queue = deps.queue();
        if (!queue) throw new Problem(503, "calls cannot be looked up at present: retry later");
        await report(queue, deps, id, { request, response, isPublic });
      });
    },
  };
}

/** At the host that the client has called: one that it can reach. */
function locationOf({ request }: WaitingCall, id: string): string {
  const { host } = request.headers;
  const isSafe = host !== undefined && /^[\w.:[\]-]+$/.test(host);
  const scheme = "encrypted" in request.socket ? "https" : "http";
  return isSafe ? `${scheme}://${host}${callsPath}${id}` : `${callsPath}${id}`;
}

interface Reporting {
  request: ClientRequest;
  response: ClientResponse;
  isPublic: boolean;
}

async function report(
  queue: Queue,
  { claims, clock }: Pick<AcceptorDeps, "claims" | "clock">,
  text: string,
  { request, response, isPublic }: Reporting,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD")
    throw new Problem(405, "use GET to look up a call");
  const [, namespace = "", id = ""] = publicIdPattern.exec(text) ?? [];
  // The namespace is looked up at the API server only for what exists: anyone may ask for any.
  const find = () => (id === "" ? undefined : queue.get(callBucket(namespace), id));
  if ((await find()) !== undefined) await claims.claim(queue, namespace);
  const kept = await find();
  if (kept === undefined) throw new Problem(404, "no such call, or its result is no longer kept");
  const now = clock.now();
  const call = await withWait(queue, namespace, JSON.parse(kept) as Call, { isPublic, now });
  const { state, response: result, reason, error, attempts, endedAt } = call;
  const { acceptedAt, startedAt, deadlineAt } = call;
  const shown = {
    id: text,
    state,
    acceptedAt,
    deadlineAt,
    startedAt,
    endedAt,
    attempts,
    reason,
    error,
    response: result,
  };
  response.writeHead(200, {
    "content-type": "application/json",
    "cache-control": "no-store",
    ...(endedAt === undefined ? { "retry-after": "1" } : {}),
  });
  response.end(request.method === "HEAD" ? undefined : `${JSON.stringify(shown)}\n`);
}

async function respond(
  { request, response }: { request: ClientRequest; response: ClientResponse },
  log: Logger,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (response.headersSent || response.destroyed) return;
    const isFull = error instanceof QueueFullError;
    const status = error instanceof Problem ? error.status : isFull ? 507 : 503;
    if (status === 503) log.warn({ error: messageOf(error) }, "accepting a call");
    const message =
      error instanceof Problem || isFull ? messageOf(error) : "calls cannot be accepted at present";
    response.writeHead(status, {
      "content-type": "text/plain; charset=utf-8",
      ...(request.complete ? {} : { connection: "close" }),
    });
    response.end(`${message}\n`);
  }
}
