import { networkInterfaces, type NetworkInterfaceInfo } from "node:os";

/**
 * The addresses that this machine has for as long as a test runs: without those of the networks of platforms that other tests start,
 * which come and go (10.244.0.0/16).
 */
export function ownAddresses(): NetworkInterfaceInfo[] {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ address }) => !address.startsWith("10.244."));
}
