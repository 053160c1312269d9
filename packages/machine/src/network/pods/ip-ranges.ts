/** First and last address, as numbers. */
export type IpRange = readonly [first: number, last: number];

const last = 2 ** 32 - 1;

/** The addresses of an IPv4 block (`10.0.0.0/8`); undefined for what is not one. */
export function rangeOf(cidr: string): IpRange | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr);
  if (!match) return undefined;
  const [a = 0, b = 0, c = 0, d = 0, length = 0] = match.slice(1).map(Number);
  if (Math.max(a, b, c, d) > 255 || length > 32) return undefined;
  const address = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d;
  const size = 2 ** (32 - length);
  const first = Math.floor(address / size) * size;
  return [first, first + size - 1];
}

export function addressNumber(ip: string): number | undefined {
  return rangeOf(`${ip}/32`)?.[0];
}

/** In order, without overlaps and gaps of nothing. */
export function union(ranges: readonly IpRange[]): IpRange[] {
  const merged: [number, number][] = [];
  for (const [first, end] of [...ranges].sort((x, y) => x[0] - y[0])) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], end);
    else merged.push([first, end]);
  }
  return merged;
}

/** What of a range is in none of the others, which are in order and without overlaps. */
export function without([first, end]: IpRange, others: readonly IpRange[]): IpRange[] {
  const left: IpRange[] = [];
  let next = first;
  for (const [from, to] of others) {
    if (to < next || from > end) continue;
    if (from > next) left.push([next, from - 1]);
    next = to + 1;
  }
  if (next <= end) left.push([next, end]);
  return left;
}

/** Whether an address is in ranges that are in order and without overlaps. */
export function contains(ranges: readonly IpRange[], address: number): boolean {
  let [low, high] = [0, ranges.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const [first, end] = ranges[middle] ?? [0, -1];
    if (address < first) high = middle - 1;
    else if (address > end) low = middle + 1;
    else return true;
  }
  return false;
}

export function isEverything([range, ...others]: readonly IpRange[]): boolean {
  return others.length === 0 && range?.[0] === 0 && range[1] === last;
}

/** As nftables has it. */
export function printedRange([first, end]: IpRange): string {
  const printed = (value: number) => [24, 16, 8, 0].map((bits) => (value >>> bits) & 255).join(".");
  return first === end ? printed(first) : `${printed(first)}-${printed(end)}`;
}
