import { expect, test } from "vitest";
import { parseDotEnv } from "./dot-env.ts";

const values = (text: string) => parseDotEnv(text).values;

// What dotenv 16, python-dotenv 1 without interpolation and `util.parseEnv` of Node.js 24 agree on.
test.each<[string, Record<string, string>]>([
  [
    "A=1\r\nexport B = 2\n# note\n\nC=\n  D='x' # y\nE=\"x\"# z",
    { A: "1", B: "2", C: "", D: "x", E: "x" },
  ],
  [`A='{"a":"b"}'`, { A: '{"a":"b"}' }],
  [`A={"a":"b"}`, { A: '{"a":"b"}' }],
  [`A="it's" #c "d"`, { A: "it's" }],
  ["A=it's", { A: "it's" }],
  ['A=x"y"', { A: 'x"y"' }],
  ["A='a\\nb'\nB=\"a\\nb\"\nC=a\\nb", { A: "a\\nb", B: "a\nb", C: "a\\nb" }],
  ['A="a\nb" # c\nB=2', { A: "a\nb", B: "2" }],
  ['A="a#b"\nB=a #b\nC= # c\nD=x\t# y', { A: "a#b", B: "a", C: "", D: "x" }],
  ['A=$B\nB=${A}\nC="$D"', { A: "$B", B: "${A}", C: "$D" }],
  ['A="a\\$b\\u0041"', { A: "a\\$b\\u0041" }],
  ['A=  x y  \nB="  x  "', { A: "x y", B: "  x  " }],
  [
    "1A=x\nA-B=x\nA.B=a=b==\n__proto__=x",
    { "1A": "x", "A-B": "x", "A.B": "a=b==", ["__proto__"]: "x" },
  ],
  ["A=1\nA=2", { A: "2" }],
])("%j has the values that all readers agree on", (text, expected) => {
  expect(parseDotEnv(text)).toEqual({ values: expected, problems: [] });
});

test.each<[string, string]>([
  ["A=ab#cd", "ab#cd"],
  ["A=#ff0000 # red", "#ff0000"],
  ["A=http://x/#y", "http://x/#y"],
  ["\uFEFFA=first", "first"],
  ["A=`x\"y'z\nw`", "x\"y'z\nw"],
  ['A="{\\"type\\":\\"x\\"}"', '{"type":"x"}'],
  ['A="{\\"key\\":\\"a\\\\nb\\"}\\n"', '{"key":"a\\nb"}\n'],
  ["A='x\\\\y'", "x\\\\y"],
  ["A=x\rB=y", "x"],
])("%j, which readers cut or read differently, has the whole value", (text, expected) => {
  expect(values(text)).toMatchObject({ A: expected });
});

test.each<[string, number, RegExp]>([
  ["A=1\nthis is wrong\nB=2", 2, /not NAME=VALUE/],
  ["=x\nB=2", 1, /not NAME=VALUE/],
  ['A="open\nB=2', 1, /closing " of A is missing: write A='…'/],
  ['A="a\\"\nB=2', 1, /closing " of A is missing/],
  ['A="x" y\nB=2', 1, /follows the closing " of A: write A='…'/],
  ["\nA='it's'\nB=2", 2, /follows the closing ' of A: write A=`…`/],
  ["A='a\nb'c`\nB=2", 1, /write A="…" with \\" for each/],
  ['A="{"type":"x"}"\nB=2', 1, /write A='…'/],
  ['A="C:\\temp"\nB=2', 1, /differ on a backslash in A: write A='…'/],
  ['A="a\\\\b"\nB=2', 1, /differ on a backslash/],
])("the problem of %j has its line and shows how to write the value", (text, line, message) => {
  const { values, problems } = parseDotEnv(text);
  expect(problems).toEqual([{ line, message: expect.stringMatching(message) as string }]);
  expect(values).toEqual({ ...(text.startsWith("A=1") && { A: "1" }), B: "2" });
});

test("what is in the line is not quoted: it may be a secret", () => {
  const { problems } = parseDotEnv("hunter2\nA='hunter2' hunter3\nB=\"hunter4");
  expect(problems).toHaveLength(3);
  expect(JSON.stringify(problems)).not.toContain("hunter");
});
