/**
 * Amounts of cpu, memory and storage: `apimachinery/pkg/api/resource.Quantity`, its grammar, its
 * rounding (up, to nano units), its cap (2^63-1) and its canonical form.
 *
 * A quantity remembers how it was written, because its canonical form stays in that family:
 * `1536Mi` becomes `1536Mi`, `1024Mi` becomes `1Gi`, `1000m` becomes `1`.
 */
export interface Quantity {
  /** The amount in units of 10^-9. */
  readonly nano: bigint;
  readonly format: "DecimalSI" | "BinarySI" | "DecimalExponent";
}

const grammar = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)([numkMGTPE]?|[KMGTPE]i|[eE][+-]?\d{1,9})$/;

const decimalExponents: Record<string, number> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const decimalSuffixes = new Map(
  Object.entries(decimalExponents).map(([suffix, exponent]) => [exponent, suffix]),
);
const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const nanosPerUnit = 10n ** 9n;
const largest = (2n ** 63n - 1n) * nanosPerUnit;
/** Longer texts are not quantities, and would make the arithmetic below expensive. */
const maxLength = 64;
/** Beyond these powers of ten a number of at most `maxLength` digits is capped or a single nano. */
const maxExponent = 100;

/** Throws an Error that quotes the text if it is not a valid quantity. */
export function parseQuantity(text: string | number): Quantity {
  const written = String(text);
  const match = written.length <= maxLength ? grammar.exec(written) : null;
  if (!match) {
    throw new Error(
      `parsing quantity ${JSON.stringify(written.slice(0, maxLength))}: ` +
        `must be a number with an optional suffix, like 500m, 1.5, 128Mi or 2e3`,
    );
  }
  const [, sign, number = "", suffix = ""] = match;
  const [whole = "", fraction = ""] = number.split(".");
  const digits = BigInt(whole + fraction);
  let format: Quantity["format"] = "DecimalSI";
  let exponent = 0;
  let factor = 1n;
  if (suffix.endsWith("i")) {
    format = "BinarySI";
    factor = 1024n ** BigInt(binarySuffixes.indexOf(suffix));
  } else if (/^[eE]./.test(suffix)) {
    format = "DecimalExponent";
    exponent = Math.max(-maxExponent, Math.min(maxExponent, Number(suffix.slice(1))));
  } else {
    exponent = decimalExponents[suffix] ?? 0;
  }
  const magnitude = capped(scaled(digits * factor, exponent - fraction.length + 9));
  return { nano: sign === "-" ? -magnitude : magnitude, format };
}

/** The canonical form: no precision lost, no fraction, the largest possible suffix. */
export function formatQuantity({ nano, format }: Quantity): string {
  if (nano === 0n) return "0";
  const sign = nano < 0n ? "-" : "";
  let amount = nano < 0n ? -nano : nano;
  // Small or fractional amounts would lose digits as multiples of 1024.
  if (format === "BinarySI" && amount >= 1024n * nanosPerUnit && amount % nanosPerUnit === 0n) {
    amount /= nanosPerUnit;
    let power = 0;
    for (; amount % 1024n === 0n && power < binarySuffixes.length - 1; power++) amount /= 1024n;
    return sign + amount + binarySuffixes[power];
  }
  let exponent = -9;
  for (; amount % 1000n === 0n && exponent < 18; exponent += 3) amount /= 1000n;
  if (format !== "DecimalExponent") return sign + amount + decimalSuffixes.get(exponent);
  return sign + amount + (exponent === 0 ? "" : `e${exponent}`);
}

/** Negative, zero or positive, like a sort function; 1024Mi and 1Gi are equal. */
export function compareQuantities(a: string | number, b: string | number): number {
  const difference = parseQuantity(a).nano - parseQuantity(b).nano;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** The sum, in the family of suffixes of the first quantity. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  const sum = a.nano + b.nano;
  const nano = sum < 0n ? -capped(-sum) : capped(sum);
  return { nano, format: a.nano === 0n ? b.format : a.format };
}

/** The amount as a plain number: cores for `500m`, bytes for `64Mi`. */
export function quantityValue(quantity: string | number | Quantity): number {
  const { nano } = typeof quantity === "object" ? quantity : parseQuantity(quantity);
  // Whole units and the rest apart: a double holds 2^53, an amount of nanos is soon beyond.
  return Number(nano / nanosPerUnit) + Number(nano % nanosPerUnit) / 1e9;
}

/** `value * 10^exponent`, rounded up. */
function scaled(value: bigint, exponent: number): bigint {
  if (exponent >= 0) return value * 10n ** BigInt(exponent);
  const divisor = 10n ** BigInt(-exponent);
  return (value + divisor - 1n) / divisor;
}

function capped(magnitude: bigint): bigint {
  return magnitude > largest ? largest : magnitude;
}
