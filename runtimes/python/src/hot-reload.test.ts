import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const env = { FUNC_HOT_RELOAD: "true" };

describe.skipIf(missingPython)("hot reload", () => {
  test.each(["def", "async def"])(
    "serves new code of %s, or else the last that could be loaded",
    async (form) => {
      const code = (text: string) => `${form} main(event, context): return "${text}"`;
      await using runtime = await PythonRuntime.start(code("first"), env);
      const body = async () => (await runtime.call()).body;
      const reloadError = async () => (await runtime.call()).headers["x-function-reload-error"];
      expect(await body()).toBe("first");
      runtime.write("handler.py", code("other"));
      await expect.poll(body).toBe("other");
      runtime.write("handler.py", "def main(:");
      await expect.poll(reloadError).toMatch(/^loading handler\.py: SyntaxError: /);
      expect(await body()).toBe("other");
      await expect.poll(() => runtime.output).toContain("the previous version keeps serving");
      runtime.write("handler.py", code("third"));
      await expect.poll(body).toBe("third");
      expect(await reloadError()).toBeUndefined();
      runtime.signal("SIGTERM");
      expect(await runtime.exited).toBe(0);
    },
  );

  test.each([
    ["def", "time.sleep"],
    ["async def", "await asyncio.sleep"],
  ])("%s finishes what the code before has begun", async (form, sleep) => {
    const code = (text: string) =>
      `import asyncio, time\n${form} main(event, context):\n    if event["extensions"]["request"].path == "/slow":\n        print("begun")\n        ${sleep}(2)\n    return "${text}"`;
    await using runtime = await PythonRuntime.start(code("old"), env);
    const slow = runtime.call("/slow");
    await expect.poll(() => runtime.output).toContain("begun");
    runtime.write("handler.py", code("new"));
    await expect.poll(async () => (await runtime.call()).body).toBe("new");
    expect((await slow).body).toBe("old");
  });

  test("that fails does not keep a process in its place that is to be replaced", async () => {
    const flag = path.join(mkdtempSync(path.join(tmpdir(), "spry-flag-")), "flag");
    onTestFinished(() => rmSync(path.dirname(flag), { recursive: true }));
    const code = (text: string) => `
import os, time
if os.path.exists("${flag}"): raise RuntimeError("not now")
def main(event, context):
    if event["extensions"]["request"].path == "/slow": time.sleep(1e6)
    return "${text}"
`;
    await using runtime = await PythonRuntime.start(code("old"), { ...env, FUNC_TIMEOUT: "1" });
    const reloadError = async () => (await runtime.call()).headers["x-function-reload-error"];
    const failures = () => runtime.output.match(/^RuntimeError: not now/gm)?.length;
    writeFileSync(flag, "");
    runtime.write("handler.py", code("new"));
    await expect.poll(reloadError).toContain("not now");
    expect(failures()).toBe(1);
    expect((await runtime.call("/slow")).status).toBe(408);
    // What takes its place cannot be loaded either, until it can.
    await expect.poll(failures).toBeGreaterThan(1);
    rmSync(flag);
    await expect.poll(async () => (await runtime.call()).body).toBe("new");
    expect(await reloadError()).toBeUndefined();
  });

  test("loses no request of many that come meanwhile", async () => {
    const code = (version: number) => `def main(event, context): return "${version}"`;
    await using runtime = await PythonRuntime.start(code(0), { ...env, FUNC_TIMEOUT: "5" });
    const last = 4;
    let version = 0;
    const statuses = new Set<number>();
    const callUntilLast = async () => {
      for (let body = ""; body !== String(last);) {
        const answer = await runtime.call();
        ({ body } = answer);
        statuses.add(answer.status);
        if (body === String(version) && version < last)
          runtime.write("handler.py", code(++version));
      }
    };
    await Promise.all(Array.from({ length: 16 }, callUntilLast));
    expect([...statuses]).toEqual([200]);
  });
});
