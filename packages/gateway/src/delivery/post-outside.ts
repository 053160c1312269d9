import { lookup as systemLookup } from "node:dns";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { plainAddress, refusedAddress } from "@spry/exposure";
import { type DeliveryResult } from "./deliverer.ts";

export interface OutsideRequest {
  url: string;
  headers: Record<string, string>;
  body: Buffer;
  timeoutMs: number;
  /** Whether this machine and its private networks may be called: on one machine, not in a cluster. */
  allowPrivate: boolean;
  /** Why an address is not called that would be otherwise: it is one of the cluster's own (`Deliverer.addressProblem`). */
  addressProblem?: ((address: string) => string | undefined) | undefined;
}

const privateNetworks = new BlockList();
for (const [network, prefix] of [
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["100.64.0.0", 10],
] as const)
  privateNetworks.addSubnet(network, prefix);
privateNetworks.addSubnet("fc00::", 7, "ipv6");

function refused(address: string, allowPrivate: boolean): string | undefined {
  const why = refusedAddress(address, allowPrivate);
  if (why !== undefined || allowPrivate) return why;
  // What an IPv6 address may contain (NAT64, 6to4) counts as itself.
  const plain = plainAddress(address);
  const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
  return privateNetworks.check(plain, family) ? `address ${address} is private` : undefined;
}

/**
 * POSTs to an address that a client has named. The address that is checked is the one that is connected to; redirects are
 * not followed, and nothing of the response is kept but its status. Never rejects.
 */
export function postOutside({
  url,
  headers,
  body,
  timeoutMs,
  allowPrivate,
  addressProblem = () => undefined,
}: OutsideRequest): Promise<DeliveryResult> {
  const { promise, resolve } = Promise.withResolvers<DeliveryResult>();
  const problemOf = (address: string) =>
    refused(address, allowPrivate) ?? (allowPrivate ? undefined : addressProblem(address));
  let wasSent = false;
  let refusedWhy: string | undefined;
  const failed = (reason: string, message: string) => resolve({ reason, message, wasSent });
  try {
    const target = new URL(url);
    const literal = target.hostname.replace(/^\[|\]$/g, "");
    const why = isIP(literal) ? problemOf(literal) : undefined;
    if (why !== undefined) {
      failed("AddressRefused", why);
      return promise;
    }
    const lookup: LookupFunction = (name, options, callback) => {
      systemLookup(name, options, (error, found, family) => {
        if (error) return callback(error, found, family);
        const all = typeof found === "string" ? [found] : found.map(({ address }) => address);
        [refusedWhy] = all.flatMap((address) => problemOf(address) ?? []);
        return refusedWhy === undefined
          ? callback(null, found, family)
          : callback(new Error(refusedWhy), found, family);
      });
    };
    const send = target.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send(target, {
      method: "POST",
      agent: false,
      headers: { ...headers, "content-length": String(body.length) },
      lookup,
      maxHeaderSize: 16 * 1024,
      signal: AbortSignal.timeout(timeoutMs),
    });
    request.on("socket", (socket) => {
      const isOpen = target.protocol === "https:" ? "secureConnect" : "connect";
      socket.once(isOpen, () => (wasSent = true));
    });
    request.on("error", (error: NodeJS.ErrnoException) =>
      error.name === "AbortError" || error.name === "TimeoutError"
        ? failed("Timeout", `no response within ${timeoutMs / 1000} s`)
        : failed(refusedWhy === undefined ? "Unreachable" : "AddressRefused", error.message),
    );
    request.on("response", (response) => {
      response.destroy();
      const { statusCode: status = 0 } = response;
      resolve({ status, headers: {}, body: Buffer.alloc(0), isCut: true });
    });
    request.end(body);
  } catch (error) {
    failed("Unsendable", error instanceof Error ? error.message : String(error));
  }
  return promise;
}
