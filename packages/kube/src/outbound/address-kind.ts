/** What an IP address stands for, by the registries of special addresses (RFC 6890) and the documents of clouds. */
import { BlockList, isIP } from "node:net";
import { familyOf, formsOf } from "./ip-address.ts";
import { ownAddresses } from "./own-addresses.ts";

export type AddressKind =
  | "public"
  /** RFC 1918, shared (RFC 6598), unique local (RFC 4193). */
  | "private"
  /** 127.0.0.0/8, ::1, and every address of this machine's interfaces. */
  | "loopback"
  /** Link-local, unspecified, multicast, reserved, and where clouds keep the credentials of machines: no server of anyone. */
  | "forbidden";

type Network = readonly [address: string, bits: number];

const loopback: readonly Network[] = [
  ["127.0.0.0", 8],
  ["::1", 128],
];

const forbidden: readonly Network[] = [
  // Unspecified: a connection to it reaches this machine.
  ["0.0.0.0", 8],
  ["::", 128],
  // Link-local and site-local, with the metadata of most clouds.
  ["169.254.0.0", 16],
  ["fe80::", 10],
  ["fec0::", 10],
  // Multicast, reserved, broadcast.
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  ["ff00::", 8],
  // Metadata elsewhere: Oracle and other protocols, Alibaba, Azure; Amazon, Google.
  ["192.0.0.0", 24],
  ["100.100.100.200", 32],
  ["168.63.129.16", 32],
  ["fd00:ec2::254", 128],
  ["fd20:ce::254", 128],
  // What an IPv4 address can hide in, with keys that only the network knows: Teredo, translators of its own.
  ["2001::", 32],
  ["64:ff9b:1::", 48],
  ["::ffff:0:0:0", 96],
];

const privateNetworks: readonly Network[] = [
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["100.64.0.0", 10],
  ["198.18.0.0", 15],
  ["fc00::", 7],
];

export function blockListOf(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const [address, bits] of networks) list.addSubnet(address, bits, familyOf(address));
  return list;
}

/** Made when the first address is looked at: most programs that load this file never look at one. */
let lists: Record<"loopback" | "forbidden" | "private", BlockList> | undefined;

function listOf(kind: "loopback" | "forbidden" | "private"): BlockList {
  lists ??= {
    loopback: blockListOf(loopback),
    forbidden: blockListOf(forbidden),
    private: blockListOf(privateNetworks),
  };
  return lists[kind];
}

const isAnyIn = (forms: readonly string[], list: BlockList): boolean =>
  forms.some((form) => list.check(form, familyOf(form)));

/**
 * What an address is. An IPv6 address that carries an IPv4 address counts as both, and the worse of the two is the result. The
 * machine's own addresses and the Kubernetes API's count as loopback. Undefined for what is not an IP address.
 */
export function addressKind(address: string): AddressKind | undefined {
  const forms = formsOf(address);
  if (forms.some((form) => isIP(form) === 0)) return undefined;
  if (isAnyIn(forms, listOf("forbidden"))) return "forbidden";
  if (isAnyIn(forms, listOf("loopback")) || isAnyIn(forms, ownAddresses())) return "loopback";
  return isAnyIn(forms, listOf("private")) ? "private" : "public";
}

/** Whether no client may call this, whatever its policy: a forbidden address, or none at all. Costs less than `addressKind`. */
export function isNeverCalled(address: string): boolean {
  const forms = formsOf(address);
  return forms.some((form) => isIP(form) === 0) || isAnyIn(forms, listOf("forbidden"));
}
