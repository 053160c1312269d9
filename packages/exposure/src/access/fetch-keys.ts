import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { type OutboundGuard, portOf } from "@spry/kube";

export interface KeyFetchOptions {
  /** Which addresses keys are fetched from. */
  guard: OutboundGuard;
  timeoutMs?: number;
  /** Trusted in addition to the system's authorities, PEM. */
  ca?: string;
}

const maxBytes = 256 * 1024;
const defaultTimeoutMs = 5_000;

/**
 * The text at a URL of keys: one request, no redirects, no credentials, a limited answer, and only to addresses that
 * are allowed, whatever the name resolves to.
 * @throws Error with a sentence that has no content of the answer
 */
export function fetchKeys(uri: string, options: KeyFetchOptions): Promise<string> {
  const { guard, timeoutMs = defaultTimeoutMs } = options;
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const url = new URL(uri);
  const port = portOf(url);
  // A name is checked when it has been resolved; an address never is.
  const refused = guard.refusal(url.hostname, port);
  if (refused) return Promise.reject(refused);
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = send(url, {
    agent: false,
    headers: { accept: "application/json, application/jwk-set+json" },
    lookup: guard.lookup(port),
    maxHeaderSize: 16 * 1024,
    ...(options.ca ? { ca: options.ca } : {}),
    signal: AbortSignal.timeout(timeoutMs),
  });
  request.on("error", (error: NodeJS.ErrnoException) => {
    const isLate = error.name === "AbortError" || error.name === "TimeoutError";
    reject(new Error(isLate ? `no answer within ${timeoutMs} ms` : (error.code ?? error.message)));
  });
  request.on("response", (response) => {
    const { statusCode = 0 } = response;
    if (statusCode !== 200) {
      response.destroy();
      return reject(new Error(`answered with status ${statusCode}`));
    }
    const chunks: Buffer[] = [];
    let length = 0;
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length <= maxBytes) return;
      response.destroy();
      reject(new Error(`answered with more than ${maxBytes} bytes`));
    });
    response.on("end", () => resolve(Buffer.concat(chunks).toString()));
    response.on("error", (error) => reject(new Error(error.message)));
    response.on("close", () => reject(new Error("the answer is incomplete")));
    return undefined;
  });
  request.end();
  return promise;
}
