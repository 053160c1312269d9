/**
 * Reading and writing JSON without a loss: an integer of 64 bits that no double holds is a `bigint` here, as it is an `int64` in
 * kube-apiserver; every other number is a double (`apimachinery/pkg/util/json`). Half of a
 * surrogate pair becomes U+FFFD, as in Go. docs/adr/0039-integers-of-64-bits.md
 */
import { integerOf } from "@spry/kube";

/** No shorter integer needs more than the 53 bits of a double. */
const longDigits = 16;
const integer = /^-?\d+$/;

/** The value of a JSON text; throws a `SyntaxError` for what is not JSON. */
export function parseJson(text: string): unknown {
  return isNotable(text) ? JSON.parse(text, exact as Reviver) : JSON.parse(text);
}

/** Whether a text may hold what `JSON.parse` changes. Nearly none does, and those are read at full speed. */
function isNotable(text: string): boolean {
  // Every run of 16 digits covers one of these places: a regular expression would look at each character.
  for (let at = longDigits - 1; at < text.length; at += longDigits)
    if (isDigit(text, at) && digitsAround(text, at) >= longDigits) return true;
  return text.includes("\\ud") || text.includes("\\uD");
}

function digitsAround(text: string, at: number): number {
  let start = at;
  let end = at + 1;
  while (start > at - longDigits && isDigit(text, start - 1)) start--;
  while (end < at + longDigits && isDigit(text, end)) end++;
  return end - start;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
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
