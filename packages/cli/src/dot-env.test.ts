import { expect, test } from "vitest";
import { dotEnvProblems } from "./dot-env.ts";

test.each<[string, number[]]>([
  ["A=1\r\nexport B = 2\n# note\n\nC=\nD='x' # y\nE=\"a\nb\"\nF.G-H=`i`", []],
  ["A=1\nthis is wrong\n=x\nB=2", [2, 3]],
  ['A="open\nB=2', [1]],
  ["A=it's", []],
])("lines of %j that are not variables", (text, lines) => {
  expect(dotEnvProblems(text).map(({ line }) => line)).toEqual(lines);
});

test("what is in the line is not quoted: it may be a secret", () => {
  expect(dotEnvProblems("hunter2")).toEqual([{ line: 1, message: "this line is not NAME=VALUE" }]);
});
