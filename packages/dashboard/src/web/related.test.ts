/** What is around Functions, tested without a browser: runs of schedules, settings by field, wrong code. */
import { describe, expect, test } from "vitest";
import { firstWrongLine } from "./editor/languages.ts";
import { nextRunOf } from "./state/next-run.ts";
import { fieldsInEffect, usualFields, valueAt, withValueAt } from "./state/settings-fields.ts";
import { readSettings, settingsYaml } from "./state/serverless.ts";

describe("the next run of a schedule", () => {
  const after = new Date("2026-03-01T12:00:00Z");
  const next = (schedule: object) =>
    nextRunOf({ name: "a", cron: "0 3 * * *", ...schedule }, after)?.toISOString();

  test("is in its time zone", () => {
    expect(next({})).toBe("2026-03-02T03:00:00.000Z");
    expect(next({ timeZone: "Europe/Berlin" })).toBe("2026-03-02T02:00:00.000Z");
    expect(next({ cron: "@hourly" })).toBe("2026-03-01T13:00:00.000Z");
  });

  test("does not exist where it is suspended, wrong or over", () => {
    expect(next({ suspend: true })).toBeUndefined();
    for (const cron of ["", "x", "0 3 31 2 *", "* * * * * *"])
      expect(next({ cron })).toBeUndefined();
    expect(next({ timeZone: "Nowhere/Else" })).toBeUndefined();
  });
});

describe("settings", () => {
  test("are read and written by field, and nothing empty remains", () => {
    const spec = withValueAt(withValueAt({}, "logLevel", "debug"), "tracing.endpoint", "http://c");
    expect(spec).toEqual({ logLevel: "debug", tracing: { endpoint: "http://c" } });
    expect(valueAt(spec, "tracing.endpoint")).toBe("http://c");
    expect(withValueAt(withValueAt(spec, "tracing.endpoint", ""), "logLevel", "")).toEqual({});
    const other = { eventing: { endpoint: "x", nats: { servers: [] } } };
    expect(withValueAt(other, "eventing.endpoint", "")).toEqual({
      eventing: { nats: { servers: [] } },
    });
    for (const odd of [{ tracing: null }, { tracing: [] }, { tracing: 5 }, { logLevel: {} }])
      for (const { path } of usualFields) expect(valueAt(odd, path)).toBe("");
  });

  test("that are in effect are those of the status", () => {
    const found = usualFields.map((field) =>
      fieldsInEffect({ tracingEndpoint: "t", logLevel: "info" }, field),
    );
    expect(found.filter(Boolean)).toEqual(["t", "info"]);
  });

  test("as YAML are the same spec, with what else there is as comments", () => {
    for (const spec of [{}, { logLevel: "debug" }, { dockerRegistry: { secretName: "s" } }]) {
      const text = settingsYaml({ spec });
      expect(readSettings(text)).toEqual({ spec });
      expect(text).toContain("# healthzLivenessTimeout: 10s");
      expect(text.includes("# dockerRegistry:")).toBe(!("dockerRegistry" in spec));
    }
    // What is a comment can be used by taking its mark away.
    const lines = settingsYaml({ spec: {} })
      .split("\n")
      .filter((line) => /^# \w+: /.test(line));
    for (const line of lines) expect(readSettings(line.slice(2))).toHaveProperty("spec");
  });
});

describe("the first wrong line", () => {
  test.each([
    ["javascript", "const a = 1;\nconst b = (;\n", 2],
    ["javascript", "export default { async fetch() { return new Response(`x${1}`) } };", undefined],
    [
      "typescript",
      "interface A { b: string }\nexport const main = (a: A): string => a.b;",
      undefined,
    ],
    ["python", "def main(event, context):\n    return (\n", 3],
    ["python", "def main(event, context):\n    return 1\n", undefined],
    ["json", '{ "a": 1,\n}', 2],
    ["json", "", undefined],
    ["text", "(((", undefined],
  ] as const)("of %s %j is %s", (language, text, line) => {
    expect(firstWrongLine(text, language)).toBe(line);
  });
});
