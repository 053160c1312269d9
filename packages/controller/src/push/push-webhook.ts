import { createHash } from "node:crypto";
import { annotations, type Function, functions } from "@spry/function";
import {
  type Clock,
  isNotFound,
  type KubeClient,
  type Logger,
  resources,
  silentLogger,
  systemClock,
} from "@spry/kube";
import { concerns, readPushEvent } from "./push-event.ts";
import { isSigned } from "./push-signature.ts";

export interface PushWebhookOptions {
  client: KubeClient;
  clock?: Clock;
  log?: Logger;
}

/** The Secret in a Function's namespace; every key of it is a secret that a sender may use. */
export const pushSecretName = "serverless-git-webhook";

const path = /^\/git\/([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$/;
/** Pushes of thousands of commits are a few megabytes. */
const maxBodyBytes = 8 * 1024 * 1024;
const maxUnderWay = 8;
/** Per namespace: how many at once, and one more after each so many milliseconds. */
const burst = 30;
const refillMs = 1000;
/** More namespaces than are ever used; those heard of least recently are forgotten. */
const maxBuckets = 10_000;

/**
 * Accepts pushes of Git servers at `POST /git/<namespace>` and has the Functions of that namespace check their
 * repositories at once, by the annotation that users can write as well: so the change is stored before the sender
 * gets its response, and it does not matter which process handles it.
 */
export function createPushWebhook(options: PushWebhookOptions): {
  fetch(request: Request): Promise<Response>;
} {
  const { client, clock = systemClock, log = silentLogger } = options;
  const buckets = new Map<string, { left: number; at: number }>();
  let underWay = 0;

  const allows = (namespace: string): boolean => {
    const now = clock.elapsed();
    const known = buckets.get(namespace) ?? { left: burst, at: now };
    const left = Math.min(burst, known.left + (now - known.at) / refillMs);
    buckets.delete(namespace);
    buckets.set(namespace, { left: Math.max(0, left - 1), at: now });
    const oldest = buckets.keys().next().value;
    if (buckets.size > maxBuckets && oldest !== undefined) buckets.delete(oldest);
    return left >= 1;
  };

  const answer = async (request: Request, namespace: string): Promise<Response> => {
    const body = await readBody(request);
    if (!body) return problem(413, `the push is larger than ${maxBodyBytes} bytes`);
    const secrets = await secretsOf(client, namespace);
    if (!isSigned(request.headers, body, secrets))
      return problem(
        401,
        `the push has no signature that matches a value of Secret ${pushSecretName} in namespace ${namespace}`,
      );
    const event = readPushEvent(textOf(request, body));
    if (!event) {
      // Servers try a new webhook out with a message of another kind.
      return Response.json({ functions: [], message: "this is not a push to a repository" });
    }
    const { items } = await client.list(functions, { namespace });
    const concerned = items.filter((fn) => {
      const git = fn.spec.source?.gitRepository;
      return git && concerns(event, git);
    });
    const mark = `push ${new Date(clock.now()).toISOString()} ${digestOf(body)}`;
    for (const fn of concerned) await checkNow(client, fn, mark);
    const names = concerned.map(({ metadata }) => metadata.name ?? "");
    log.info({ namespace, functions: names, ref: event.ref }, "a push came");
    return Response.json({ functions: names });
  };

  return {
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const namespace = path.exec(pathname)?.[1];
      if (namespace === undefined) return problem(404, "pushes are accepted at /git/<namespace>");
      if (request.method !== "POST") return problem(405, "a push must be sent with POST");
      if (underWay >= maxUnderWay || !allows(namespace))
        return problem(429, "too many pushes", { "retry-after": "5" });
      underWay++;
      try {
        return await answer(request, namespace);
      } catch (error) {
        log.error({ error, namespace }, "taking a push");
        return problem(503, "try again later", { "retry-after": "10" });
      } finally {
        underWay--;
      }
    },
  };
}

async function checkNow(client: KubeClient, fn: Function, mark: string): Promise<void> {
  const { namespace, name = "" } = fn.metadata;
  const target = { name, ...(namespace === undefined ? {} : { namespace }) };
  const patch = { metadata: { annotations: { [annotations.gitCheck]: mark } } };
  await client.patch(functions, target, patch).catch((error: unknown) => {
    // Deleted meanwhile: there is nothing left to do.
    if (!isNotFound(error)) throw error;
  });
}

async function secretsOf(client: KubeClient, namespace: string): Promise<string[]> {
  try {
    const { data = {} } = await client.get(resources.secrets, { namespace, name: pushSecretName });
    return Object.values(data)
      .map((value) => Buffer.from(value, "base64").toString().trim())
      .filter((secret) => secret !== "");
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** Undefined when it is too much. */
async function readBody(request: Request): Promise<Uint8Array | undefined> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBodyBytes) return undefined;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > maxBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** GitHub can also send it as a form with one field. */
function textOf(request: Request, body: Uint8Array): string {
  const text = Buffer.from(body).toString();
  const isForm = request.headers
    .get("content-type")
    ?.startsWith("application/x-www-form-urlencoded");
  return isForm ? (new URLSearchParams(text).get("payload") ?? "") : text;
}

function digestOf(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("hex").slice(0, 8);
}

function problem(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: message }, { status, headers });
}
