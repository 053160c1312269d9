/**
 * Reading and writing JSON without a loss: an integer of 64 bits that no double holds is a `bigint` here, as it is an `int64` in
 * kube-apiserver; every other number is a double (`apimachinery/pkg/util/json`). A text that ends with half a character gets U+FFFD,
 * as in Go. docs/adr/0041-integers-of-64-bits.md
 */

/** Nearly no object has any of these; the others are read at full speed. */
const notable = /\d{16}|\\u[dD][89a-fA-F]/;
const integer = /^-?\d+$/;

// `JSON.stringify` throws for a bigint otherwise; what it writes here is the number.
Object.defineProperty(BigInt.prototype, "toJSON", {
  configurable: true,
  writable: true,
  value(this: bigint): unknown {
    return rawJson(String(this));
  },
});

/** The value of a JSON text; throws a `SyntaxError` for what is not JSON. */
export function parseJson(text: string): unknown {
  return notable.test(text) ? JSON.parse(text, exact as Reviver) : JSON.parse(text);
}

/** The integer of decimal digits: a `bigint` where a number would lose some, a number outside of 64 bits. */
export function integerOf(digits: string): number | bigint {
  const near = Number(digits);
  if (Number.isSafeInteger(near)) return near;
  const value = BigInt(digits);
  return BigInt.asIntN(64, value) === value ? value : near;
}

/** Whether this is what Go has as an `int64`. A double beyond 2^53 is none, even if it has no fraction. */
export function isInt64(value: unknown): value is number | bigint {
  return typeof value === "bigint" || Number.isSafeInteger(value);
}

export function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** As it is written in a JSON text, the first number that is too large for a double. */
export function oversizedIn(text: string): string {
  let found = "";
  const look = (_key: string, value: unknown, { source = "" }: Context) => {
    if (typeof value === "number" && !Number.isFinite(value)) found ||= source;
    return value;
  };
  JSON.parse(text, look as Reviver);
  return found.slice(0, 100);
}

function exact(_key: string, value: unknown, { source = "" }: Context): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "number") {
    return Number.isSafeInteger(value) || !integer.test(source) ? value : integerOf(source);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value);
  if (entries.every(([key]) => key.isWellFormed())) return value;
  return Object.fromEntries(entries.map(([key, each]) => [key.toWellFormed(), each]));
}

interface Context {
  /** The text of a value that is not an object or a list. */
  source?: string;
}

type Reviver = (this: unknown, key: string, value: unknown) => unknown;

/** The compiler does not know it yet (ECMAScript's "JSON.parse source text access"). */
const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };
