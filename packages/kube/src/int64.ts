/**
 * Integers as Kubernetes has them: an `int64` that no double holds is a `bigint`, and is written to JSON with all of its digits.
 * docs/adr/0039-integers-of-64-bits.md
 */

// `JSON.stringify` throws for a bigint otherwise.
// oxlint-disable-next-line no-extend-native
Object.defineProperty(BigInt.prototype, "toJSON", {
  configurable: true,
  writable: true,
  value(this: bigint): unknown {
    // Older browsers do not have it.
    return newer.rawJSON?.(String(this)) ?? Number(this);
  },
});

/** The integer of decimal digits: a `bigint` where a number would lose some, a number outside of 64 bits. */
export function integerOf(digits: string): number | bigint {
  const near = Number(digits);
  if (Number.isSafeInteger(near)) return near;
  const value = BigInt(digits);
  return BigInt.asIntN(64, value) === value ? value : near;
}

/** The compiler does not know it yet (ECMAScript's "JSON.parse source text access"). */
const newer = JSON as unknown as { rawJSON?: (text: string) => unknown };
