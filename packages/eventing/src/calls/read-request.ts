import { type WaitingCall } from "@spry/gateway";
import { Problem } from "../admin/problem.ts";
import { callBounds, type CallOptions } from "./call.ts";
import { type Submission } from "./submit.ts";

/** Ours, and those of OpenFaaS and the drafts of the IETF: the Function gets none of them. */
const own = new Set([
  "prefer",
  "x-callback-url",
  "idempotency-key",
  "x-async-delay",
  "x-async-deadline",
  "x-async-retries",
  "x-async-retention",
  "x-async-on-success",
  "x-async-on-failure",
  "host",
  "content-length",
]);

/**
 * Reads a request for a call that may wait.
 * @throws Problem with a sentence for the client
 */
export async function readCall(call: WaitingCall): Promise<Submission> {
  const { request, key, path, headers } = call;
  const [namespace = "", name = ""] = key.split("/");
  const text = (header: string): string | undefined => {
    const value = request.headers[header];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const number = (header: string, most: number, otherwise: number): number => {
    const value = text(header);
    if (value === undefined) return otherwise;
    if (/^\d{1,9}$/.test(value) && Number(value) <= most) return Number(value);
    throw new Problem(400, `${header}: must be a whole number from 0 to ${most}`);
  };
  const url = async (header: string): Promise<string | undefined> => {
    const value = text(header);
    if (value === undefined) return undefined;
    const problem = await urlProblem(value, namespace, call);
    if (problem !== undefined) throw new Problem(400, `${header}: ${problem}`);
    return value;
  };
  const idempotencyKey = text("idempotency-key");
  if ((idempotencyKey?.length ?? 0) > callBounds.keyLength)
    throw new Problem(
      400,
      `idempotency-key: at most ${callBounds.keyLength} characters are allowed`,
    );
  const { retentionSeconds, defaultRetentionSeconds, defaultRetries } = callBounds;
  const callbackUrl = await url("x-callback-url");
  const onSuccess = await url("x-async-on-success");
  const onFailure = await url("x-async-on-failure");
  const options: CallOptions = {
    retries: number("x-async-retries", callBounds.retries, defaultRetries),
    retentionMs: number("x-async-retention", retentionSeconds, defaultRetentionSeconds) * 1_000,
    ...(callbackUrl === undefined ? {} : { callbackUrl }),
    ...(onSuccess === undefined ? {} : { onSuccess }),
    ...(onFailure === undefined ? {} : { onFailure }),
    ...(call.isOfMachine ? { isOfMachine: true } : {}),
  };
  const passed: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const header = headers[at] ?? "";
    if (!own.has(header.toLowerCase())) passed.push(header, headers[at + 1] ?? "");
  }
  if (JSON.stringify(passed).length > callBounds.headerBytes)
    throw new Problem(
      431,
      `headers of a call that may wait: at most ${callBounds.headerBytes} bytes`,
    );
  return {
    namespace,
    name,
    method: request.method ?? "POST",
    path,
    headers: passed,
    body: await bodyOf(call),
    options,
    delayMs: number("x-async-delay", callBounds.delaySeconds, 0) * 1_000,
    ...deadlineOf(text("x-async-deadline"), () =>
      number("x-async-deadline", callBounds.deadlineSeconds, 0),
    ),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
}

function deadlineOf(text: string | undefined, seconds: () => number): { deadlineMs?: number } {
  return text === undefined ? {} : { deadlineMs: seconds() * 1_000 };
}

/** The Service that a URL names; undefined for other hosts. */
export function serviceOf({ hostname }: URL): { name: string; namespace: string } | undefined {
  const [, name, namespace] =
    /^([^.]+)\.([^.]+)\.svc(?:\.cluster\.local)?\.?$/.exec(hostname) ?? [];
  return name === undefined || namespace === undefined ? undefined : { name, namespace };
}

/** Why results cannot be sent to this URL. The addresses of its name are checked when they are sent. */
async function urlProblem(
  text: string,
  namespace: string,
  { mayCall }: Pick<WaitingCall, "mayCall">,
): Promise<string | undefined> {
  if (text.length > callBounds.urlLength) return `at most ${callBounds.urlLength} characters`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return "not a valid http or https URL";
  if (url.username !== "" || url.password !== "") return "must not have credentials";
  if (!/\.(?:svc|cluster\.local)\.?$/.test(url.hostname)) return undefined;
  const service = serviceOf(url);
  if (service?.namespace !== namespace)
    return `Services of the Function's own namespace ${namespace} only`;
  // Otherwise it would bypass the token that its APIRule demands, or a NetworkPolicy.
  if (!(await mayCall(`${namespace}/${service.name}`)))
    return `Service ${service.name} cannot be called from where this request comes from, or by the Function`;
  return undefined;
}

async function bodyOf({ request, takeMemory }: WaitingCall): Promise<Buffer> {
  const tooLarge = new Problem(
    413,
    `the body of a call that may wait has at most ${callBounds.bodyBytes} bytes`,
  );
  if (Number(request.headers["content-length"] ?? 0) > callBounds.bodyBytes) throw tooLarge;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > callBounds.bodyBytes) throw tooLarge;
    if (!takeMemory(chunk.length))
      throw new Problem(503, "too many calls are being accepted at present: retry later");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
