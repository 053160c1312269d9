/** Which addresses are this machine's own, or its nearest neighbours', however they are written. */
import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";

const withoutZone = (address: string) => address.replace(/%.*$/, "");
const familyOf = (address: string) => (isIP(withoutZone(address)) === 6 ? "ipv6" : "ipv4");
const contains = (list: BlockList, address: string) => list.check(address, familyOf(address));

/** Loopback, unspecified, link-local, multicast and broadcast: RFC 6890, and for IPv6 RFC 4291. */
const internal: readonly [address: string, bits: number][] = [
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  ["::", 128],
  ["::1", 128],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
  // Where clouds keep the credentials of machines, besides 169.254.169.254: Alibaba, Oracle, AWS.
  ["100.100.100.200", 32],
  ["192.0.0.192", 32],
  ["fd00:ec2::254", 128],
];
/** Made when it is first asked for: most programs that load this file never do. */
let fixed: BlockList | undefined;

/** Prefixes (of 96 bits, but 6to4's of 16) behind which an IPv4 address stands: mapped, compatible, NAT64. */
const carriers = ["0:0:0:0:0:ffff", "0:0:0:0:0:0", "64:ff9b:0:0:0:0", "0:0:0:0:ffff:0"];

/** Loopback, link-local and the like, the machine's own addresses, and the Kubernetes API. */
export function isInternal(address: string): boolean {
  const own = new BlockList();
  for (const each of Object.values(networkInterfaces()).flat()) {
    if (each) own.addAddress(withoutZone(each.address), familyOf(each.address));
  }
  const api = process.env["KUBERNETES_SERVICE_HOST"] ?? "";
  if (isIP(api)) own.addAddress(api, familyOf(api));
  const known = (fixed ??= listOf(internal));
  return formsOf(address).some((form) => contains(known, form) || contains(own, form));
}

/** A list that an operator has written: addresses and networks (`10.0.0.0/8`). Undefined where an entry is neither. */
export function networkOf(entry: string): BlockList | undefined {
  const [address = "", bits, ...rest] = entry.split("/");
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  if (family === 0 || rest.length > 0) return undefined;
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most)) return undefined;
  return listOf([[address, bits === undefined ? most : Number(bits)]]);
}

export function isWithin(address: string, networks: readonly BlockList[]): boolean {
  const forms = formsOf(address);
  return networks.some((network) => forms.some((form) => contains(network, form)));
}

/** The address, and the IPv4 address that it carries. */
function formsOf(text: string): string[] {
  const address = withoutZone(text);
  if (isIP(address) !== 6) return [address];
  const groups = groupsOf(address);
  const ipv4 = (high = 0, low = 0) => [high >> 8, high & 255, low >> 8, low & 255].join(".");
  const prefix = groups
    .slice(0, 6)
    .map((group) => group.toString(16))
    .join(":");
  if (carriers.includes(prefix)) return [address, ipv4(groups[6], groups[7])];
  return groups[0] === 0x2002 ? [address, ipv4(groups[1], groups[2])] : [address];
}

/** The eight groups of an IPv6 address, from whichever of its forms. */
function groupsOf(address: string): number[] {
  // The shortest form, without dotted parts.
  const short = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [before = "", after] = short.split("::");
  const numbers = (part: string) =>
    part === "" ? [] : part.split(":").map((each) => parseInt(each, 16));
  const head = numbers(before);
  const tail = after === undefined ? [] : numbers(after);
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function listOf(networks: readonly (readonly [address: string, bits: number])[]): BlockList {
  const list = new BlockList();
  for (const [address, bits] of networks) list.addSubnet(address, bits, familyOf(address));
  return list;
}
