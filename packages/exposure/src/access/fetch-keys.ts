import { lookup as systemLookup } from "node:dns";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { plainAddress, refusedAddress } from "./key-address.ts";

export interface KeyFetchOptions {
  /** Whether issuers may run on this machine: on one machine, not in a cluster. */
  allowLoopback: boolean;
  /** Why this tenant may not use an address that is otherwise allowed, as a sentence; undefined if it may. */
  mayReach?: (address: string, port: number) => string | undefined;
  /** How names are resolved; the system's way by default. */
  lookup?: LookupFunction;
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
  const { timeoutMs = defaultTimeoutMs } = options;
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const url = new URL(uri);
  const address = url.hostname.replace(/^\[|\]$/g, "");
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  // A name is checked when it has been resolved; an address never is.
  const refused = isIP(address) ? refusal(address, port, options) : undefined;
  if (refused) return Promise.reject(new Error(refused));
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = send(url, {
    agent: false,
    headers: { accept: "application/json, application/jwk-set+json" },
    lookup: guarded(port, options),
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

function refusal(
  address: string,
  port: number,
  { allowLoopback, mayReach }: KeyFetchOptions,
): string | undefined {
  return refusedAddress(address, allowLoopback) ?? mayReach?.(plainAddress(address), port);
}

/** A look-up whose result is checked, so that the address that is checked is the one that is connected to. */
function guarded(port: number, fetching: KeyFetchOptions): LookupFunction {
  const { lookup = systemLookup } = fetching;
  return (name, options, callback) => {
    lookup(name, options, (error, found, family) => {
      if (error) return callback(error, found, family);
      const addresses =
        typeof found === "string" ? [{ address: found, family: family ?? 0 }] : found;
      const [refused] = addresses.flatMap(({ address }) => refusal(address, port, fetching) ?? []);
      if (refused) return callback(new Error(refused), found, family);
      return callback(null, found, family);
    });
  };
}
