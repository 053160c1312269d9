import { DebuggerClient, freePort } from "@spry/test-kit";
import { describe, expect, test } from "vitest";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const packages = missingPython ? undefined : installPackages("debugpy");
const patience = { timeout: 30_000 };

test.skipIf(missingPython)(
  "a debugger that is not installed is named with the way out",
  async () => {
    await using runtime = await PythonRuntime.launch("def main(event, context): pass", {
      FUNC_INSPECT: "true",
    });
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toMatch(/^FUNC_INSPECT: the package debugpy is not installed; add it/);
  },
);

test.skipIf(missingPython)("a port that is taken is named", async () => {
  await using other = await PythonRuntime.start("def main(event, context): pass");
  await using runtime = await PythonRuntime.launch("def main(event, context): pass", {
    FUNC_INSPECT: String(other.port),
  });
  expect(await runtime.exited).toBe(1);
  expect(runtime.output).toContain(`listening on 127.0.0.1:${other.port}: Address already in use`);
});

describe.skipIf(!packages)("debugpy, which pip installs", () => {
  test.each(["def", "async def"])(
    "stops in %s, and after a reload in the new code, on the same port",
    { timeout: 60_000 },
    async (form) => {
      const code = (text: string) =>
        `${form} main(event, context):\n    text = "${text}"\n    return text`;
      const port = await freePort();
      await using runtime = await PythonRuntime.start(code("first"), {
        FUNC_INSPECT: String(port),
        FUNC_HOT_RELOAD: "true",
        PYTHONPATH: packages ?? "",
      });
      const stopAndGo = async (text: string) => {
        using debuggerClient = new DebuggerClient(port);
        await debuggerClient.attach(runtime.file("handler.py"), 3);
        const answer = runtime.call();
        expect(await debuggerClient.variableWhereItStops("text")).toBe(`'${text}'`);
        debuggerClient.continue();
        expect((await answer).body).toBe(text);
      };
      await stopAndGo("first");
      runtime.write("handler.py", "def main(:");
      await expect.poll(() => runtime.output, patience).toContain("keeps serving");
      await stopAndGo("first");
      runtime.write("handler.py", code("other"));
      await expect.poll(async () => (await runtime.call()).body, patience).toBe("other");
      await stopAndGo("other");
      expect(runtime.output).not.toContain("Address already in use");
    },
  );

  test("can be waited for", { timeout: 60_000 }, async () => {
    const port = await freePort();
    await using runtime = await PythonRuntime.launch(
      "loaded = 1\ndef main(event, context): return 'ok'",
      {
        FUNC_INSPECT: `${port},wait`,
        PYTHONPATH: packages ?? "",
      },
    );
    await expect.poll(() => runtime.output, patience).toContain("Debugger listening on");
    using debuggerClient = new DebuggerClient(port);
    await debuggerClient.attach(runtime.file("handler.py"), 1);
    await debuggerClient.variableWhereItStops("__name__");
    debuggerClient.continue();
    await runtime.ready;
    expect((await runtime.call()).body).toBe("ok");
  });
});
