import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "@spry/test-kit";
import { describe, expect, test } from "vitest";
import { send, startFunction } from "../testing/running-function.ts";

const env = { FUNC_HOT_RELOAD: "true" };
const ask = async (url: string) => (await send(url)).body;

describe("hot reload", () => {
  const forms = [
    {
      name: "CommonJS",
      file: "handler.js",
      code: (text: string) => `exports.main = () => "${text}";`,
    },
    {
      name: "an ES module",
      file: "handler.mjs",
      code: (text: string) => `export const main = () => "${text}";`,
    },
    {
      name: "TypeScript",
      file: "handler.ts",
      code: (text: string) => `export const main = (): string => "${text}";`,
    },
    {
      name: "a main program",
      file: "handler.js",
      code: (text: string) =>
        `if (require.main === module) require("http").createServer((request, response) => response.end("${text}")).listen(3000);`,
    },
  ];
  test.each(forms)("serves new code of $name when it is saved", async ({ file, code }) => {
    const { url, directory } = await startFunction({ [file]: code("first") }, env);
    expect(await ask(url)).toBe("first");
    writeFileSync(join(directory, file), code("second"));
    await expect.poll(() => ask(url)).toBe("second");
  });

  test("sees changes of other files, and forgets what the code before has done", async () => {
    const { url, directory } = await startFunction(
      {
        "handler.js": `let calls = 0; exports.main = () => require("./lib/text.js") + ++calls;`,
        "lib/text.js": `module.exports = "a";`,
      },
      env,
    );
    expect([await ask(url), await ask(url)]).toEqual(["a1", "a2"]);
    writeFileSync(join(directory, "lib/text.js"), `module.exports = "b";`);
    await expect.poll(() => ask(url)).toMatch(/^b/);
  });

  test("keeps the last code that could be loaded, and says why", async () => {
    const { url, directory, stderr } = await startFunction(`exports.main = () => "good";`, env);
    writeFileSync(join(directory, "handler.js"), `exports.main = () => {`);
    const reloadError = async () => (await send(url)).headers["x-function-reload-error"];
    await expect.poll(reloadError).toMatch(/^loading handler\.js: SyntaxError: /);
    expect(await ask(url)).toBe("good");
    await expect.poll(stderr).toMatch(/handler\.js:1[^]*the previous version keeps serving/);
    writeFileSync(join(directory, "handler.js"), `exports.main = () => "better";`);
    await expect.poll(() => ask(url)).toBe("better");
    expect(await reloadError()).toBeUndefined();
  });

  test("finishes what the code before has begun", async () => {
    const slow = `exports.main = () => console.log("begun") ?? new Promise((done) => setTimeout(done, 1500, "old"));`;
    const { url, directory, stderr, stdout } = await startFunction(slow, env);
    const begun = ask(url);
    await expect.poll(stdout).toBe("begun\n");
    writeFileSync(join(directory, "handler.js"), `exports.main = () => "new";`);
    await expect.poll(stderr).toMatch(/reloaded in \d+ ms/);
    expect([await ask(url), await begun]).toEqual(["new", "old"]);
  });

  test("stops when it is told to", async () => {
    const {
      url,
      process: child,
      exited,
    } = await startFunction(`exports.main = () => "hello";`, env);
    child.kill("SIGTERM");
    expect(await exited).toBe(0);
    await expect(send(url)).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe("the inspector", () => {
  test("listens on loopback, when it is asked for", async () => {
    const port = await freePort();
    const { stderr } = await startFunction(`exports.main = () => "hello";`, {
      FUNC_INSPECT: String(port),
    });
    await expect.poll(stderr).toContain(`Debugger listening on ws://127.0.0.1:${port}/`);
    const list = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
    expect(list).toMatchObject([{ webSocketDebuggerUrl: expect.stringContaining("ws://") }]);
  });
});
