import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { dumpYaml, loadYaml } from "./yaml.ts";

/** A scalar, and the JSON that `kubectl annotate --local --dry-run=client -f FILE a=b -o json` has for it (version 1.32). */
const scalars: [yaml: string, json: string][] = [
  ["0400", "256"],
  ["0o17", "15"],
  ["017", "15"],
  ["08", "8"],
  ["09", "9"],
  ["0777", "511"],
  ["0644", "420"],
  ["-017", "-15"],
  ["+12", "12"],
  ["1_000", "1000"],
  ["0x1F", "31"],
  ["0XFF", "255"],
  ["0b101", "5"],
  ["0B1", "1"],
  ["-0x1f", "-31"],
  ["1e3", "1000"],
  ["1E3", "1000"],
  ["1.10", "1.1"],
  ["1.", "1"],
  [".5", "0.5"],
  ["+.5", "0.5"],
  ["-.5e2", "-50"],
  ["1e400", '"1e400"'],
  ["12345678901234567890", "12345678901234567000"],
  ["9223372036854775807", "9223372036854775807"],
  ["9223372036854775808", "9223372036854776000"],
  ["-9223372036854775808", "-9223372036854775808"],
  ["18446744073709551615", "18446744073709552000"],
  ["yes", "true"],
  ["Yes", "true"],
  ["YES", "true"],
  ["no", "false"],
  ["No", "false"],
  ["NO", "false"],
  ["on", "true"],
  ["On", "true"],
  ["ON", "true"],
  ["off", "false"],
  ["Off", "false"],
  ["OFF", "false"],
  ["y", "true"],
  ["Y", "true"],
  ["n", "false"],
  ["N", "false"],
  ["true", "true"],
  ["True", "true"],
  ["TRUE", "true"],
  ["tRue", '"tRue"'],
  ["false", "false"],
  ["null", "null"],
  ["Null", "null"],
  ["NULL", "null"],
  ["~", "null"],
  ["22:22", '"22:22"'],
  ["1:30:00", '"1:30:00"'],
  ["190:20:30", '"190:20:30"'],
  ["2001-01-01", '"2001-01-01"'],
  ["2001-12-14T21:59:43.10-05:00", '"2001-12-14T21:59:43.10-05:00"'],
  ["1e3x", '"1e3x"'],
  ["0x", '"0x"'],
  ["0xG", '"0xG"'],
  ["0b2", '"0b2"'],
  ["0o8", '"0o8"'],
  ["00", "0"],
  ["000", "0"],
  ["00123", "83"],
  ["0_7", "7"],
  ["_1", '"_1"'],
  ["1_", "1"],
  ["0.0", "0"],
  ["-0", "0"],
  ["-0.0", "0"],
  ["1234e56", "1.234e+59"],
  ["1234e999", '"1234e999"'],
  ["+491234567", "491234567"],
  ["1,000", '"1,000"'],
  ["=", '"="'],
  ["0.1e-7", "1e-8"],
  ["1e-400", "0"],
  ["6e8", "600000000"],
  ["!!str 1", '"1"'],
  ['"0400"', '"0400"'],
  ["'0400'", '"0400"'],
  ["0.5_5", "0.55"],
  ["1_2.5", "12.5"],
  ['!!int "12"', "12"],
  ["!!binary aGk=", '"hi"'],
  ["!!float 1", "1"],
  ["0e0", "0"],
  ["12e03", "12000"],
  ["-1_0", "-10"],
  ["0x_1F", "31"],
  ["0b1_0", "2"],
  ["1__0", "10"],
  ["._5", '"._5"'],
  ["1e_5", "100000"],
  ["1_e5", "100000"],
  [".e5", '".e5"'],
  ["0o", '"0o"'],
  ["08.5", "8.5"],
  ["010.5", "10.5"],
  ["0x1.8p1", '"0x1.8p1"'],
  ["Infinity", '"Infinity"'],
  ["NaN", '"NaN"'],
  ["1e+5", "100000"],
  ["1e05", "100000"],
  ["007", "7"],
  ["-00", "0"],
  ["+0", "0"],
  ["+017", "15"],
  ["0888", "888"],
];

/** kubectl's numbers beyond 64 bits have other digits for the same double. */
const sameNumber = (a: string, b: string) => /^-?\d{19,}$/.test(b) && Number(a) === Number(b);

test.each(scalars)("%s is what kubectl reads: %s", (yaml, json) => {
  const read = JSON.stringify((loadYaml(`v: ${yaml}\n`) as { v: unknown }).v);
  if (!sameNumber(read, json)) expect(read).toBe(json);
});

const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;
test.skipIf(!hasKubectl)("the installed kubectl reads all of them so", () => {
  const list = scalars.map(([yaml]) => `- ${yaml}\n`).join("");
  const manifest = `apiVersion: x.example/v1\nkind: X\nmetadata: { name: a }\nspec:\n${list}`;
  const args = ["annotate", "--local", "--dry-run=client", "-f", "-", "a=b", "-o", "json"];
  const { stdout, stderr } = spawnSync("kubectl", args, { input: manifest, encoding: "utf8" });
  expect(stderr).toBe("");
  const json = `[${scalars.map(([, each]) => each).join(",")}]`;
  expect((JSON.parse(stdout) as { spec: unknown }).spec).toEqual(JSON.parse(json));
});

test.each(scalars)("the text %s stays a text, as a value and as a key", (text) => {
  const value = { [text]: text };
  expect(loadYaml(dumpYaml(value))).toEqual(value);
});

test.each([
  ["a: &a {x: 1, z: 0}\nv: {<<: *a, z: 2}", { x: 1, z: 2 }],
  ["a: &a {x: 1}\nb: &b {x: 2, w: 2}\nv:\n  <<: [*a, *b]", { x: 1, w: 2 }],
  ["v: {1: a, 0400: b, yes: c}", { 1: "a", 256: "b", true: "c" }],
  ["v: |\n  0400", "0400\n"],
  [
    "v: [0400, ~, !!timestamp 2001-01-01, !!binary aGVsbMO8]",
    [256, null, "2001-01-01", "hell\u00fc"],
  ],
])("%j is read as kubectl does", (yaml, expected) => {
  expect((loadYaml(yaml) as { v: unknown }).v).toEqual(expected);
});

test("bytes that are not base64 are refused", () => {
  expect(() => loadYaml("v: !!binary '***'")).toThrow();
});
