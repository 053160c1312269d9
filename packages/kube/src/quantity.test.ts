import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityValue,
} from "./quantity.ts";

describe("the canonical form of a quantity", () => {
  test.each([
    ["0", "0"],
    ["0Mi", "0"],
    ["-0", "0"],
    ["1000m", "1"],
    ["1500m", "1500m"],
    ["0.5", "500m"],
    [".5", "500m"],
    ["1.", "1"],
    ["+12", "12"],
    ["100.035k", "100035"],
    ["1000000", "1M"],
    ["1024Mi", "1Gi"],
    ["1536Mi", "1536Mi"],
    ["1.5Gi", "1536Mi"],
    ["0.5Ki", "512"],
    ["1023Ki", "1023Ki"],
    ["1.0001Ki", "1024102400u"],
    ["1e3", "1e3"],
    ["12e-3", "12e-3"],
    ["1E3", "1e3"],
    ["1E", "1E"],
    ["1e9", "1e9"],
    ["10000e0", "10e3"],
    ["1u", "1u"],
    ["0.1n", "1n"],
    ["-0.1n", "-1n"],
    ["-1500m", "-1500m"],
    ["9E", "9E"],
    ["10E", "9223372036854775807"],
    ["8Ei", "9223372036854775807"],
    ["1e999999999", "9223372036854775807"],
    ["1e-999999999", "1e-9"],
  ])("%s is %s", (written, canonical) => {
    expect(formatQuantity(parseQuantity(written))).toBe(canonical);
  });
});

test.each([
  "",
  " ",
  "1 Gi",
  "1gi",
  "1K",
  "Mi",
  "1.2.3",
  "1e",
  "--1",
  "0x10",
  "1Kii",
  "1".repeat(65),
])("%j is no quantity", (text) => expect(() => parseQuantity(text)).toThrow("parsing quantity"));

test.each([
  ["500m", 0.5],
  ["64Mi", 64 * 1024 * 1024],
  ["1e3", 1000],
  ["-1.5", -1.5],
])("%s is worth %d", (text, value) => expect(quantityValue(text)).toBe(value));

test("quantities compare by amount, not by spelling", () => {
  expect(compareQuantities("1024Mi", "1Gi")).toBe(0);
  expect(compareQuantities("1G", "1Gi")).toBe(-1);
  expect(compareQuantities("0.2", "100m")).toBe(1);
});

test("a sum is written like its first addend", () => {
  const sum = addQuantities(parseQuantity("512Mi"), parseQuantity("536870912"));
  expect(formatQuantity(sum)).toBe("1Gi");
});

const written = fc
  .tuple(
    fc.constantFrom("", "-", "+"),
    fc.nat(),
    fc.option(fc.nat(), { nil: undefined }),
    fc.constantFrom("n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2", "e0"),
  )
  .map(
    ([sign, whole, rest, suffix]) =>
      `${sign}${whole}${rest === undefined ? "" : `.${rest}`}${suffix}`,
  );

test("formatting keeps the amount, and a canonical form is its own", () => {
  fc.assert(
    fc.property(written, (text) => {
      const quantity = parseQuantity(text);
      const canonical = formatQuantity(quantity);
      const again = parseQuantity(canonical);
      expect(again.nano).toBe(quantity.nano);
      expect(formatQuantity(again)).toBe(canonical);
    }),
  );
});
