export interface ByteRange {
  start: number;
  /** Of the last byte. */
  end: number;
}

/** The ranges, and the unit that they are of. */
export type Ranges = ByteRange[] & { type: string };

const limits = { ranges: 100 };

/**
 * A `Range` header over so many bytes (RFC 9110, section 14.1.2), as Express' `request.range` has it: -1
 * when none of the ranges can be satisfied, -2 when it is malformed.
 */
export function parseRanges(header: string, size: number): Ranges | -1 | -2 {
  const [unit = "", list] = header.split("=", 2);
  if (list === undefined) return -2;
  const ranges = Object.assign([] as ByteRange[], { type: unit.trim() });
  for (const text of list.split(",", limits.ranges)) {
    const [, first = "", last = ""] = /^\s*(\d*)-(\d*)\s*$/.exec(text) ?? [];
    if (first === "" && last === "") return -2;
    const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
    const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
    if (start <= end) ranges.push({ start, end });
  }
  return ranges.length > 0 ? ranges : -1;
}
