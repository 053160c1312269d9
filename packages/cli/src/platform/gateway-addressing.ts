import { type Sandbox } from "@spry/machine";
import { type GatewayAddressing } from "@spry/serving";

const loopback = "127.0.0.1";

/**
 * Where callers among the Pods of this machine reach the gateway. Processes that share the machine's loopback find each Service
 * at an address of its own, which only Linux has enough of; others find it at a port of its own.
 */
export function gatewayAddressing(
  { hostAddress }: Pick<Sandbox, "hostAddress">,
  gateway: { port: number },
  platform: NodeJS.Platform = process.platform,
): GatewayAddressing {
  if (hostAddress === loopback && platform === "linux")
    return { kind: "address", port: gateway.port };
  return { kind: "port", addresses: () => [hostAddress] };
}

/** All addresses that it may give to Services, for the gateway to listen on. */
export function callerAddresses({ hostAddress }: Pick<Sandbox, "hostAddress">): string[] {
  return ["127.96.0.0/12", hostAddress];
}
