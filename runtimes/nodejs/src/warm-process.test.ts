import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { send, startWarmProcess } from "./testing/running-function.ts";

describe("a warm process", () => {
  test("becomes the Function that it is handed, with that one's environment and nothing else", async () => {
    const warm = startWarmProcess();
    const url = await warm.hand(
      { "handler.mjs": "export const main = () => ({ env: process.env, cwd: process.cwd() });" },
      { FUNC_NAME: "late", MY_SETTING: "x", FUNC_TIMEOUT: "9" },
    );
    const { env, cwd } = JSON.parse((await send(url)).body) as {
      env: Record<string, string>;
      cwd: string;
    };
    expect(Object.keys(env).toSorted()).toEqual([
      "FUNC_NAME",
      "FUNC_PORT",
      "FUNC_TIMEOUT",
      "MY_SETTING",
      "SERVER_HOST",
    ]);
    expect(cwd).toMatch(/function$/);
    // What it did to warm up is nobody's.
    expect((await send(`${url}/metrics`)).body).toMatch(/^function_calls_total 1$/m);
  });

  test("ends when nobody has a Function for it", async () => {
    const warm = startWarmProcess();
    warm.write("");
    const [code] = (await once(warm.process, "close")) as [number];
    expect({ code, stderr: warm.stderr() }).toEqual({ code: 0, stderr: "" });
  });

  test("takes a Function with the options that it was started with", async () => {
    const options = { NODE_OPTIONS: "--max-old-space-size=76" };
    const url = await startWarmProcess(options).hand(
      "exports.main = () => process.env.NODE_OPTIONS;",
      options,
    );
    expect((await send(url)).body).toBe(options.NODE_OPTIONS);
  });

  const mistakes = [
    { name: "no JSON", line: "{", says: /JSON/ },
    { name: "no directory", line: '{"env":{}}', says: /its directory is not an absolute path/ },
    {
      name: "a relative directory",
      line: '{"directory":"a","env":{}}',
      says: /not an absolute path/,
    },
    { name: "no environment", line: '{"directory":"/"}', says: /its environment is not an object/ },
    {
      name: "what counts only at the start",
      line: '{"directory":"/","env":{"NODE_OPTIONS":"--no-warnings"}}',
      says: /NODE_OPTIONS has an effect only when a process starts/,
    },
  ];
  test.each(mistakes)("says why it cannot be one: $name", async ({ line, says }) => {
    const warm = startWarmProcess();
    warm.write(`${line}\n`);
    const [code] = (await once(warm.process, "close")) as [number];
    expect(code).toBe(1);
    expect(warm.stderr()).toMatch(says);
  });
});
