/** What all gateways of a cluster have counted: each Pod counts for itself. */
import { lookup } from "node:dns/promises";
import { isIPv6 } from "node:net";
import { metricsAt, type ReadGatewayMetrics } from "@spry/dashboard";

const adminPort = 8090;

/** Reads the metrics of all Pods behind the name of a headless Service. Rejects when none can be read. */
export function gatewayMetricsBehind(
  host: string,
  { port = adminPort, addressesOf = allAddresses } = {},
): ReadGatewayMetrics {
  return async () => {
    const read = await Promise.allSettled(
      (await addressesOf(host)).map((address) =>
        metricsAt(`http://${isIPv6(address) ? `[${address}]` : address}:${port}/metrics`),
      ),
    );
    // A Pod that is being replaced does not keep the others' figures away.
    const texts = read.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    if (texts.length === 0) throw new Error(`none of the gateways behind ${host} could be reached`);
    return texts;
  };
}

const allAddresses = async (host: string): Promise<string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address);
