/** IP addresses in whichever way they are written, and the IPv4 addresses that stand inside of IPv6 ones. */
import { isIP } from "node:net";

const withoutZone = (address: string): string => address.replace(/%.*$/, "");

export const familyOf = (address: string): "ipv4" | "ipv6" =>
  isIP(withoutZone(address)) === 6 ? "ipv6" : "ipv4";

/** A URL's host name as an address: without the brackets of IPv6. */
export const withoutBrackets = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");

/** Prefixes behind which an IPv4 address stands: mapped, compatible, NAT64 (RFC 6052), translated (RFC 2765), 6to4 (RFC 3056). */
const carriers: readonly { groups: readonly number[]; at: number }[] = [
  { groups: [0, 0, 0, 0, 0, 0xffff], at: 6 },
  { groups: [0, 0, 0, 0, 0, 0], at: 6 },
  { groups: [0x64, 0xff9b, 0, 0, 0, 0], at: 6 },
  { groups: [0, 0, 0, 0, 0xffff, 0], at: 6 },
  { groups: [0x2002], at: 1 },
];

/** The address without its zone, and the IPv4 address that it carries, if it carries one. Both have to be looked at. */
export function formsOf(address: string): string[] {
  const plain = withoutZone(address);
  const carried = isIP(plain) === 6 ? carriedAddress(groupsOf(plain)) : undefined;
  return carried === undefined ? [plain] : [plain, carried];
}

/** The IPv4 address that an IPv6 address carries, or the address itself, without its zone. */
export function plainAddress(address: string): string {
  return formsOf(address).at(-1) ?? address;
}

function carriedAddress(groups: readonly number[]): string | undefined {
  // `::` and `::1` carry nothing.
  if (groups.slice(0, 7).every((group) => group === 0) && (groups[7] ?? 0) <= 1) return undefined;
  const carrier = carriers.find((each) => each.groups.every((group, n) => group === groups[n]));
  // An address of ISATAP (RFC 5214) says so in its second half, in whichever network it is.
  const isIsatap = ((groups[4] ?? 0) & 0xfdff) === 0 && groups[5] === 0x5efe;
  const at = carrier?.at ?? (isIsatap ? 6 : undefined);
  if (at === undefined) return undefined;
  const [high = 0, low = 0] = groups.slice(at, at + 2);
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  // The shortest form, without dotted parts.
  const short = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [before = "", after] = short.split("::");
  const numbers = (part: string) =>
    part === "" ? [] : part.split(":").map((each) => Number.parseInt(each, 16));
  const head = numbers(before);
  const tail = after === undefined ? [] : numbers(after);
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}
