import { expect, test } from "vitest";
import { goRegExp } from "./go-regexp.ts";

test.each<[string, string[], string[]]>([
  ["^(?i)(abort|warn)?$", ["", "Abort", "WARN"], ["x"]],
  ["^((?i)january|may|1[0-2])(?:z|y)$", ["JANUARYz", "Mayy", "11z"], ["JANUARYZ", "may"]],
  ["^(?i)a|b$", ["Ax", "xB"], ["xA", "C"]],
  ["^(?i)a(?-i)b$", ["Ab", "ab"], ["aB"]],
  ["^(?P<year>[0-9]{4})-(?<rest>.*)$", ["2026-x"], ["26-x"]],
  [String.raw`\A[[:alpha:]_]+\z`, ["ab_C"], ["ab1", "ab\n"]],
  [String.raw`^\Qa.b|c\E$`, ["a.b|c"], ["axb|c"]],
  ["^[][]+$", ["[]", "]"], ["a"]],
  ["^[^]]$", ["a"], ["]"]],
  [String.raw`^\pL+$`.replace("pL", "p{L}"), ["äb"], ["1"]],
  [String.raw`^[a-z0-9\-\_]+$`, ["a-b_1"], ["A"]],
  ["^(?s).$", ["\n"], ["ab"]],
  ["^(?U)a+$", ["aa"], ["b"]],
  ["^[[:^alpha:]]$", ["1"], ["a"]],
  [String.raw`^\s\w$`, [" a"], ["\u{a0}a", " ä"]],
  [String.raw`^v1\.[0-4](\.|$)`, ["v1.4", "v1.0.2"], ["v1.5"]],
])("%s", (pattern, taken, refused) => {
  const expression = goRegExp(pattern);
  expect(taken.filter((text) => !expression.test(text))).toEqual([]);
  expect(refused.filter((text) => expression.test(text))).toEqual([]);
});

test.each([
  "(?=a)",
  "(?!a)",
  "(?<=a)b",
  String.raw`(a)\1`,
  "(",
  "a)",
  "[",
  "*a",
  "a**",
  "a{1001}",
  "[[:nothing:]]",
])("%s is none", (pattern) => {
  expect(() => goRegExp(pattern)).toThrow(SyntaxError);
});

test.each([
  ["^(a+)+$", `${"a".repeat(1_000_000)}b`],
  ["^(a|a)*$", `${"a".repeat(1_000_000)}b`],
  ["(x+x+)+y", "x".repeat(1_000_000)],
  ["(.*a){20}$", `${"a".repeat(1_000_000)}b`],
])("%s takes time linear in its text", (pattern, text) => {
  expect(goRegExp(pattern).test(text)).toBe(false);
});
