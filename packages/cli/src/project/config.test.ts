import { describe, expect, test } from "vitest";
import { runtimes, templates } from "@spry/function";
import { filesOf } from "../init/files-of.ts";
import { UserError } from "../user-error.ts";
import { parseConfig } from "./config.ts";
import { functionOf } from "./project.ts";

describe("spry.yaml", () => {
  test("has names, variables and scale", () => {
    const text = `name: shop\nenv:\n  N: 1\n  S: { secret: db, key: password }\nscale: { min: 0, max: 2 }\n`;
    expect(parseConfig(text)).toEqual({
      name: "shop",
      env: { N: "1", S: { secret: "db", key: "password" } },
      scale: { min: 0, max: 2 },
    });
    expect(parseConfig("# nothing\n")).toEqual({});
  });

  const asWritten = ["1.10", "00123", "0644", "1234e56", "12345678901234567890", "+491234567"];
  const more = ["1e400", "0x1F", "0o17", ".5", "1.", "-0", "True", "yes", ".inf", "2001-01-01"];
  test.each([...asWritten, ...more, '"007"', "!!int 08"])(
    "has the variable %s as text",
    (value) => {
      const expected = value.replace("!!int ", "").replaceAll('"', "");
      const text = `env: &env\n  A: ${value} # note\nfunctions:\n  one: { env: *env }\n  two: { env: { B: ${value} } }\n`;
      const { env, functions } = parseConfig(text);
      expect(env).toEqual({ A: expected });
      expect(functions?.["one"]?.env).toEqual({ A: expected });
      expect(functions?.["two"]?.env).toEqual({ B: expected });
    },
  );

  test("has schedules, as the template of init writes them", () => {
    const cron = templates.find(({ name }) => name === "cron")!;
    const runtime = runtimes.find(({ name }) => name === "nodejs24")!;
    const config = parseConfig(filesOf(cron, runtime, "cleaner")["spry.yaml"] ?? "");
    const schedules = [{ name: "cleanup", cron: "*/5 * * * *", overlap: "Skip" }];
    expect(config).toMatchObject({ name: "cleaner", schedules });
    const found = { root: "/x", name: "cleaner", handler: "handler.ts" };
    const project = { ...found, runtime, config, remarks: [] };
    expect(functionOf(project, "default", {}).spec).toMatchObject({ schedules });
  });

  const refused: [string, string, string, string?][] = [
    ["a schedule without a time", "schedules:\n  - name: a\n", "spry.yaml:2: schedules.0 needs"],
    [
      "a schedule that is none",
      "schedules:\n  - name: a\n    cron: '@daily'\n  - name: b\n    cron: every day\n",
      'spry.yaml:5: schedules.1.cron "every day" is not a cron expression: 2 fields',
      "",
    ],
    [
      "a schedule of one of several Functions",
      "functions:\n  one:\n    schedules:\n      - cron: 61 * * * *\n        name: a\n",
      'spry.yaml:4: functions.one.schedules.0.cron "61 * * * *" is not a cron expression: minute "61"',
    ],
    [
      "a time zone that does not exist",
      "schedules:\n- name: a\n  cron: '@daily'\n  timeZone: Europe/Berln\n",
      'spry.yaml:4: schedules.0.timeZone "Europe/Berln" is not a time zone',
    ],
    ["an unknown key", "name: a\nruntme: x\n", "spry.yaml:2: runtme is not a known key", "runtime"],
    ["no YAML", "name: [\n", "spry.yaml:2:1: not valid YAML"],
    ["a text", "hello\n", 'spry.yaml: must be an object, not "hello"'],
    ["a capital letter", "name: Shop\n", 'spry.yaml:1: name is "Shop"', "lower-case"],
    ["an old runtime", "runtime: nodejs12\n", 'spry.yaml:1: runtime is "nodejs12"', "nodejs24"],
    [
      "a negative scale",
      "scale:\n  min: -1\n",
      "spry.yaml:2: scale.min must be at least 0, not -1",
    ],
    ["a number as text", "scale: { max: x }\n", 'scale.max must be an integer, not "x"'],
    ["a list as a variable", "env:\n  A: [1]\n", "spry.yaml:2: env.A must be"],
    [
      "variables as a list",
      "env:\n  - name: A\n    value: x\n",
      "spry.yaml:1: env must be an object",
      "env: { NAME: value }",
    ],
    [
      "a reserved variable",
      "functions:\n  one:\n    env:\n      A: x\n      FUNC_PORT: 1\n",
      "spry.yaml:5: functions.one.env.FUNC_PORT is a reserved name",
      "PYTHONPATH",
    ],
    ["a Secret without key", "env:\n  A: { secret: db }\n", "spry.yaml:2: env.A needs the key key"],
    ["a name that no shell takes", "env:\n  A-B: x\n", "spry.yaml:2: env.A-B is not a valid name"],
    [
      "a variable that is an object",
      "env:\n  A: { value: x }\n",
      "env.A is not a value",
      "secret: …",
    ],
  ];
  test.each(refused)("refuses %s", (_name, text, message, wayOut = "") => {
    let error: unknown;
    try {
      parseConfig(text);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).message).toContain(message);
    expect((error as UserError).wayOut ?? "").toContain(wayOut);
  });
});
