import { isIPv4, isIPv6 } from "node:net";
import { CelNamespace, type Library } from "./library.ts";

const v4Bits = 32;
const v6Bits = 128;

/** An IP address as rules see it (`library/ip.go`). */
class CelAddress {
  readonly value: bigint;
  readonly bits: number;
  constructor(value: bigint, bits: number) {
    this.value = value;
    this.bits = bits;
  }
}

/** A block of addresses as rules see it (`library/cidr.go`). */
class CelBlock {
  readonly address: CelAddress;
  readonly length: number;
  constructor(address: CelAddress, length: number) {
    this.address = address;
    this.length = length;
  }
}

class IpNames extends CelNamespace {}

function parsedAddress(text: string): CelAddress {
  if (isIPv4(text)) return new CelAddress(v4Value(text), v4Bits);
  if (!isIPv6(text) || text.includes("%"))
    throw new Error(`IP Address ${JSON.stringify(text)} parse error during conversion from string`);
  const value = v6Value(text);
  if (value >> 32n === 0xffffn)
    throw new Error(`IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed`);
  return new CelAddress(value, v6Bits);
}

function v4Value(text: string): bigint {
  return text.split(".").reduce((sum, each) => (sum << 8n) | BigInt(each), 0n);
}

function v6Value(text: string): bigint {
  const last = text.slice(text.lastIndexOf(":") + 1);
  let plain = text;
  if (last.includes(".")) {
    const low = v4Value(last);
    plain = `${text.slice(0, -last.length)}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  }
  const [left = "", right] = plain.split("::");
  const words = (part: string) => part.split(":").filter((each) => each !== "");
  const head = words(left);
  const tail = words(right ?? "");
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  const all = [...head, ...(right === undefined ? [] : zeros), ...tail];
  return all.reduce((sum, each) => (sum << 16n) | BigInt(`0x${each}`), 0n);
}

function addressText({ value, bits }: CelAddress): string {
  const size = bits === v4Bits ? 8n : 16n;
  const count = bits === v4Bits ? 4 : 8;
  const mask = (1n << size) - 1n;
  const parts = Array.from(
    { length: count },
    (_, index) => (value >> (size * BigInt(count - 1 - index))) & mask,
  );
  if (bits === v4Bits) return parts.join(".");
  // RFC 5952: the form of URLs.
  const plain = parts.map((part) => part.toString(16)).join(":");
  return new URL(`http://[${plain}]`).hostname.slice(1, -1);
}

function parsedBlock(text: string): CelBlock {
  const [address = "", length = "", ...rest] = text.split("/");
  const fail = () =>
    new Error(`network address parse error during conversion from string: ${text}`);
  if (rest.length > 0 || !/^(?:0|[1-9]\d{0,2})$/.test(length)) throw fail();
  const base = parsedAddress(address);
  if (Number(length) > base.bits) throw fail();
  return new CelBlock(base, Number(length));
}

function isGood(parse: (text: string) => unknown): (text: string) => boolean {
  return (text) => {
    try {
      parse(text);
      return true;
    } catch {
      return false;
    }
  };
}

function networkOf({ address, length }: CelBlock): bigint {
  const hostBits = BigInt(address.bits - length);
  return (address.value >> hostBits) << hostBits;
}

function contains(block: CelBlock, { value, bits }: CelAddress): boolean {
  if (bits !== block.address.bits) return false;
  return networkOf(new CelBlock(new CelAddress(value, bits), block.length)) === networkOf(block);
}

function containsBlock(outer: CelBlock, inner: CelBlock): boolean {
  return inner.length >= outer.length && contains(outer, inner.address);
}

function masked(block: CelBlock): CelBlock {
  return new CelBlock(new CelAddress(networkOf(block), block.address.bits), block.length);
}

/** Whether the address begins with these bits, by family. */
function begins(prefix4: string | undefined, prefix6: string): (address: CelAddress) => boolean {
  const blocks = [prefix4, prefix6].map((text) => (text === undefined ? text : parsedBlock(text)));
  return (address) => blocks.some((block) => block !== undefined && contains(block, address));
}

const isLoopback = begins("127.0.0.0/8", "::1/128");
const isMulticast = begins("224.0.0.0/4", "ff00::/8");
const isLinkLocalMulticast = begins("224.0.0.0/24", "ff02::/16");
const isLinkLocalUnicast = begins("169.254.0.0/16", "fe80::/10");
const isUnspecified = ({ value }: CelAddress) => value === 0n;
const isBroadcast = ({ value, bits }: CelAddress) => bits === v4Bits && value === 0xffff_ffffn;
const isGlobal = (address: CelAddress) =>
  ![isUnspecified, isBroadcast, isLoopback, isMulticast, isLinkLocalUnicast].some((is) =>
    is(address),
  );

export const network: Library = {
  types: { "net.IP": CelAddress, "net.CIDR": CelBlock, "net.IpNames": IpNames },
  constants: { ip: { type: "net.IpNames", value: new IpNames() } },
  functions: [
    ["ip(string): net.IP", parsedAddress],
    ["isIP(string): bool", isGood(parsedAddress)],
    [
      "net.IpNames.isCanonical(string): bool",
      (_: IpNames, text: string) => addressText(parsedAddress(text)) === text,
    ],
    ["net.IP.family(): int", ({ bits }: CelAddress) => (bits === v4Bits ? 4n : 6n)],
    ["net.IP.isUnspecified(): bool", isUnspecified],
    ["net.IP.isLoopback(): bool", isLoopback],
    ["net.IP.isLinkLocalMulticast(): bool", isLinkLocalMulticast],
    ["net.IP.isLinkLocalUnicast(): bool", isLinkLocalUnicast],
    ["net.IP.isGlobalUnicast(): bool", isGlobal],
    ["string(net.IP): string", addressText],
    ["cidr(string): net.CIDR", parsedBlock],
    ["isCIDR(string): bool", isGood(parsedBlock)],
    ["net.CIDR.containsIP(net.IP): bool", contains],
    [
      "net.CIDR.containsIP(string): bool",
      (block: CelBlock, text: string) => contains(block, parsedAddress(text)),
    ],
    ["net.CIDR.containsCIDR(net.CIDR): bool", containsBlock],
    [
      "net.CIDR.containsCIDR(string): bool",
      (block: CelBlock, text: string) => containsBlock(block, parsedBlock(text)),
    ],
    ["net.CIDR.ip(): net.IP", ({ address }: CelBlock) => address],
    ["net.CIDR.masked(): net.CIDR", masked],
    ["net.CIDR.prefixLength(): int", ({ length }: CelBlock) => BigInt(length)],
    [
      "string(net.CIDR): string",
      ({ address, length }: CelBlock) => `${addressText(address)}/${length}`,
    ],
  ],
  operators: [
    [
      "net.IP == net.IP",
      (a: CelAddress, b: CelAddress) => a.value === b.value && a.bits === b.bits,
    ],
    [
      "net.CIDR == net.CIDR",
      (a: CelBlock, b: CelBlock) =>
        a.address.value === b.address.value &&
        a.address.bits === b.address.bits &&
        a.length === b.length,
    ],
  ],
};
