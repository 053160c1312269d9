import { charge } from "../cel-meter.ts";
import { CelNamespace, type Library } from "./library.ts";

class StringNames extends CelNamespace {}

/** A replacement can be longer than all it is made from. */
export function chargeReplacement(text: string, from: string, to: string): void {
  charge((text.length + (text.length / (from.length || 1)) * to.length) / 10);
}

function replaced(text: string, from: string, to: string, limit: bigint): string {
  chargeReplacement(text, from, to);
  if (limit < 0n) return text.replaceAll(from, to);
  let left = limit;
  return text.replaceAll(from, (found) => (left-- > 0n ? to : found));
}

/** `%s`, `%d`, `%f`, `%e`, `%b`, `%x`, `%X`, `%o`, with a precision (`cel-go/ext/formatting.go`). */
function formatted(text: string, values: readonly unknown[]): string {
  let next = 0;
  return text.replaceAll(/%(?:\.(\d{1,3}))?([a-zA-Z%])/g, (_, precision: string, verb: string) => {
    if (verb === "%") return "%";
    if (next >= values.length) throw new Error(`index ${next} out of range`);
    return shown(values[next++], verb, precision === undefined ? 6 : Number(precision));
  });
}

function shown(value: unknown, verb: string, precision: number): string {
  const wrong = () => new Error(`could not format ${typeof value} with the clause %${verb}`);
  switch (verb) {
    case "s":
      return plain(value);
    case "d":
      if (typeof value !== "bigint" && typeof value !== "number") throw wrong();
      return String(value);
    case "f":
      return Number(value).toFixed(Math.min(precision, 100));
    case "e":
      return Number(value)
        .toExponential(Math.min(precision, 100))
        .replace(/e([+-])(\d)$/, "e$10$2");
    case "b":
    case "o":
    case "x":
    case "X": {
      if (typeof value === "string" && verb.toLowerCase() === "x") {
        const hex = Buffer.from(value).toString("hex");
        return verb === "X" ? hex.toUpperCase() : hex;
      }
      if (typeof value === "boolean" && verb === "b") return value ? "1" : "0";
      if (typeof value !== "bigint") throw wrong();
      const digits = value.toString({ b: 2, o: 8, x: 16, X: 16 }[verb]);
      return verb === "X" ? digits.toUpperCase() : digits;
    }
  }
  throw new Error(`unrecognized formatting clause "${verb}"`);
}

function plain(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(plain).join(", ")}]`;
  if (value instanceof Date) return value.toISOString().replace(/\.000Z$/, "Z");
  if (value === null) return "null";
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value).map(([key, each]) => `${key}: ${plain(each)}`);
  return `{${entries.toSorted().join(", ")}}`;
}

/** `cel-go/ext/strings.go`, version 2: what the language itself lacks. */
export const strings: Library = {
  types: { "cel.StringNames": StringNames },
  constants: { strings: { type: "cel.StringNames", value: new StringNames() } },
  functions: [
    ["string.replace(string, string, int): string", replaced],
    ["string.format(list): string", formatted],
    [
      "cel.StringNames.quote(string): string",
      (_: StringNames, text: string) => JSON.stringify(text),
    ],
  ],
};
