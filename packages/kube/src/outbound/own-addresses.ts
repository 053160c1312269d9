import { readFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { familyOf } from "./ip-address.ts";

/** Interfaces come and go with Pods; reading hundreds of them for each look-up would cost more than the look-up. */
const freshMs = 500;

type Network = readonly [address: string, bits: number];

let read: { list: BlockList; at: number; api: string } | undefined;

/** The addresses at which this machine answers at present (at most half a second old), and that of the Kubernetes API. */
export function ownAddresses(): BlockList {
  const api = process.env["KUBERNETES_SERVICE_HOST"] ?? "";
  const now = performance.now();
  if (read && read.api === api && now - read.at < freshMs) return read.list;
  const list = new BlockList();
  const interfaces = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  for (const address of [...interfaces.map((each) => each.address), api]) {
    const plain = address.replace(/%.*$/, "");
    if (isIP(plain)) list.addAddress(plain, familyOf(plain));
  }
  // Node.js leaves out interfaces that have no carrier: a bridge without Pods, whose address answers nevertheless.
  const routes = [
    ...localIpv4(contentOf("/proc/net/fib_trie")),
    ...localIpv6(contentOf("/proc/net/ipv6_route")),
  ];
  for (const [address, bits] of routes) list.addSubnet(address, bits, familyOf(address));
  read = { list, at: now, api };
  return list;
}

/** Empty on other systems than Linux. */
function contentOf(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}

/** What the kernel delivers to itself, by its table of IPv4 routes (`fib_trie`): addresses, and networks of type `local`. */
export function localIpv4(text: string): Network[] {
  const found: Network[] = [];
  let address = "";
  for (const line of text.split("\n")) {
    address = /\|-- (\d+\.\d+\.\d+\.\d+)/.exec(line)?.[1] ?? address;
    const [, bits] = /\/(\d+) host LOCAL/.exec(line) ?? [];
    if (bits !== undefined && isIP(address)) found.push([address, Number(bits)]);
  }
  return found;
}

/** `RTF_LOCAL` of linux/ipv6_route.h. */
const localFlag = 0x8000_0000;

/** The same of IPv6 (`ipv6_route`): network, its length, …, flags, interface; numbers are hexadecimal. */
export function localIpv6(text: string): Network[] {
  return text.split("\n").flatMap((line): Network[] => {
    const [network = "", bits = "", ...rest] = line.trim().split(/\s+/);
    const isLocal = Number.parseInt(rest[6] ?? "0", 16) >= localFlag;
    if (!isLocal || !/^[0-9a-f]{32}$/.test(network)) return [];
    return [[network.replace(/(.{4})(?=.)/g, "$1:"), Number.parseInt(bits, 16)]];
  });
}
