import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { AddressRefusedError, OutboundGuard, portOf } from "@spry/kube";
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
  const guard = new OutboundGuard(
    allowPrivate
      ? { allowPrivate, allowLoopback: true }
      : { allowPrivate, problemOf: addressProblem },
  );
  let wasSent = false;
  const failed = (reason: string, message: string) => resolve({ reason, message, wasSent });
  try {
    const target = new URL(url);
    const port = portOf(target);
    const refused = guard.refusal(target.hostname, port);
    if (refused) {
      failed("AddressRefused", refused.message);
      return promise;
    }
    const send = target.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send(target, {
      method: "POST",
      agent: false,
      headers: { ...headers, "content-length": String(body.length) },
      lookup: guard.lookup(port),
      maxHeaderSize: 16 * 1024,
      signal: AbortSignal.timeout(timeoutMs),
    });
    request.on("socket", (socket) => {
      const isOpen = target.protocol === "https:" ? "secureConnect" : "connect";
      socket.once(isOpen, () => (wasSent = true));
    });
    request.on("error", (error: NodeJS.ErrnoException) => {
      if (error instanceof AddressRefusedError) return failed("AddressRefused", error.message);
      if (error.name === "AbortError" || error.name === "TimeoutError")
        return failed("Timeout", `no response within ${timeoutMs / 1000} s`);
      return failed("Unreachable", error.message);
    });
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
