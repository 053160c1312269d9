import { BlockList, isIP } from "node:net";

/** This machine, and services that only it may use. */
const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8);
loopback.addAddress("::1", "ipv6");

/** Where no issuer is: unspecified, link-local (a cloud's metadata), multicast, reserved. */
const never = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["169.254.0.0", 16],
  // Metadata of clouds that is not at a link-local address: Oracle's and other protocols', Alibaba's, Azure's.
  ["192.0.0.0", 24],
  ["100.100.100.200", 32],
  ["168.63.129.16", 32],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  never.addSubnet(network, prefix);
never.addAddress("::", "ipv6");
for (const [network, prefix] of [
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
  // Metadata of clouds by its IPv6 address: Amazon's, Google's.
  ["fd00:ec2::254", 128],
  ["fd20:ce::254", 128],
  // What an IPv4 address can hide in: Teredo, translators of a network's own, and SIIT.
  ["2001::", 32],
  ["64:ff9b:1::", 48],
  ["::ffff:0:0:0", 96],
] as const)
  never.addSubnet(network, prefix, "ipv6");

/**
 * Why keys cannot be fetched from this address, undefined if they can. Private networks are allowed, because issuers run there;
 * `KeyFetchOptions.mayReach` decides about addresses of other tenants.
 * IPv4 addresses inside of IPv6 (mapped, NAT64, 6to4) count as what they contain.
 */
export function refusedAddress(address: string, allowLoopback: boolean): string | undefined {
  const plain = plainAddress(address);
  const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
  if (isIP(plain) === 0) return `${address} is not an IP address`;
  if (never.check(plain, family)) return `address ${address} is link-local or reserved`;
  if (!allowLoopback && loopback.check(plain, family)) return `address ${address} is loopback`;
  return undefined;
}

/** The IPv4 address that an IPv6 address contains, or the address itself. */
export function plainAddress(address: string): string {
  return embeddedIpv4(address) ?? address;
}

const embeddings = [
  { prefix: "::ffff:0:0", bits: 96, at: 6 },
  { prefix: "::", bits: 96, at: 6 },
  { prefix: "64:ff9b::", bits: 96, at: 6 },
  { prefix: "2002::", bits: 16, at: 1 },
];

function embeddedIpv4(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  const groups = groupsOf(address);
  if (
    groups.every((group, index) => group === (index === 7 ? groups[7] : 0)) &&
    (groups[7] ?? 0) <= 1
  )
    return undefined;
  for (const { prefix, bits, at } of embeddings) {
    const expected = groupsOf(prefix).slice(0, bits / 16);
    if (!expected.every((group, index) => group === groups[index])) continue;
    const [high = 0, low = 0] = groups.slice(at, at + 2);
    return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
  }
  return undefined;
}

/** The eight groups of an IPv6 address, with or without an IPv4 tail. */
function groupsOf(address: string): number[] {
  const withoutZone = address.split("%")[0] ?? "";
  const text = withoutZone.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(0, 4).map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head = "", tail] = text.split("::");
  const parse = (part: string) =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const first = parse(head);
  const last = tail === undefined ? [] : parse(tail);
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => 0);
  return [...first, ...zeros, ...last];
}
