/** Before a Pod's programs get SIGTERM, the gateway confirms that their last request has been answered. */
import { drainedPath, knativeLabels } from "@spry/function";
import { type NodeOptions } from "@spry/machine";

/**
 * Only Pods of Revisions: any program may be in them, and few finish their requests when they get SIGTERM. Knative's
 * queue-proxy holds the signal back in the same way. Without a gateway, nothing is waited for.
 */
export function gatewayDrain(gateway: {
  /** Of its administration: another one after the gateway ended unexpectedly. */
  url: () => string;
  token: string;
}): NonNullable<NodeOptions["drained"]> {
  return async (pod, ip, signal) => {
    if (!pod.metadata.labels?.[knativeLabels.revision]) return;
    const address = `${gateway.url()}${drainedPath}?pod=${encodeURIComponent(ip)}`;
    const headers = { authorization: `Bearer ${gateway.token}` };
    for (;;) {
      try {
        const response = await fetch(address, { headers, signal });
        return await response.body?.cancel();
      } catch (error) {
        // A request may take longer than `fetch` waits for an answer.
        const { code } = (error as { cause?: { code?: string } }).cause ?? {};
        if (signal.aborted || code !== "UND_ERR_HEADERS_TIMEOUT") throw error;
      }
    }
  };
}
