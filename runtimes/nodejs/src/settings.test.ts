/** What settings change that a Function's user sees. */
import { describe, expect, test } from "vitest";
import { failToStart, send, startFunction } from "./testing/running-function.ts";

const main = `exports.main = ({ extensions: { request } }) => request.method;`;
const request = `exports.main = (req, res) => res.end(req.method);`;
const fetcher = `exports.fetch = (request) => new Response(request.method);`;
const framework = `require("@google-cloud/functions-framework").http("f", (req, res) => res.send(req.method));`;
test.each([
  { of: "main", code: main, env: {}, has: true },
  { of: "main(request, response)", code: request, env: { FUNC_RUNTIME: "nodejs26" }, has: true },
  { of: "main", code: main, env: { FUNC_CORS: "off" }, has: false },
  { of: "fetch", code: fetcher, env: {}, has: false },
  { of: "fetch", code: fetcher, env: { FUNC_CORS: "on" }, has: true },
  { of: "the Functions Framework", code: framework, env: {}, has: false },
])("$of, with $env: whether pages of every origin may ask: $has", async ({ code, env, has }) => {
  const { url } = await startFunction(code, env);
  const headers = { "access-control-request-method": "PUT" };
  const answer = await send(url, { method: "OPTIONS", headers });
  const named = Object.keys(answer.headers).filter((name) => name.startsWith("access-control"));
  expect({ named, body: answer.body }).toEqual({
    named: has ? ["access-control-allow-methods", "access-control-allow-origin"] : [],
    body: has ? "" : "OPTIONS",
  });
});

describe("lines of the log", () => {
  const code = `exports.main = async (event) => {
    await null; console.log("hello %s", "you", { a: 1 }); console.warn("careful"); console.dir([1]);
    if (event.data) throw new Error("thrown"); return "ok"; };`;
  const headers = { "x-request-id": "id-1", "content-type": "text/plain" };

  test("in JSON carry level and invocation", async () => {
    const { url, stdout, stderr } = await startFunction(code, {
      FUNC_LOG_FORMAT: "json",
      SERVER_INTERNAL_LOGGER: "1",
    });
    await send(url, { method: "POST", headers, body: "x" });
    await expect.poll(stdout).toMatch(/POST/);
    const lines = `${stdout()}${stderr()}`.trim().split("\n");
    const entries = lines.map((line) => JSON.parse(line) as Record<string, string>);
    expect(
      entries.map(({ level, message, invocation }) => [level, message?.split("\n")[0], invocation]),
    ).toEqual([
      ["info", "hello you { a: 1 }", "id-1"],
      ["info", "[ 1 ]", "id-1"],
      ["info", expect.stringContaining("POST / HTTP/1.1"), "id-1"],
      ["warn", "careful", "id-1"],
      ["error", "request id-1 (POST /): the handler threw: Error: thrown", "id-1"],
    ]);
    expect(Date.now() - Date.parse(entries[0]?.["time"] ?? "")).toBeLessThan(60_000);
  });

  test("as text carry them too; an id of nobody's is made", async () => {
    const { url, stdout } = await startFunction(code, { FUNC_LOG_FORMAT: "text" });
    await send(url, { headers: { "x-request-id": "no id" } });
    await expect.poll(stdout).toMatch(/^\S+Z INFO {2}\[[\da-f-]{36}\] hello you \{ a: 1 \}$/m);
  });

  test("are as the Function writes them otherwise", async () => {
    const { url, stdout } = await startFunction(code);
    await send(url);
    await expect.poll(stdout).toBe("hello you { a: 1 }\n[ 1 ]\n");
  });
});

describe("hooks", () => {
  test("start runs before the first request, stop after the last", async () => {
    const fn = await startFunction(`let state = "new";
      exports.start = async () => { await null; state = "started"; };
      exports.stop = async () => { await null; console.log("stopped"); };
      exports.main = async () => { await new Promise((done) => console.log("begun") ?? setTimeout(done, 200)); console.log("answered"); return state; };`);
    const last = send(fn.url);
    await expect.poll(fn.stdout).toBe("begun\n");
    fn.process.kill("SIGTERM");
    expect((await last).body).toBe("started");
    const code = await fn.exited;
    expect({ code, stdout: fn.stdout() }).toEqual({
      code: 0,
      stdout: "begun\nanswered\nstopped\n",
    });
  });

  test("a start that fails is a load error", async () => {
    const { code, stderr } = await failToStart(
      `exports.main = () => {};\nexports.start = async () => { throw new Error("no database"); };`,
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/^starting the Function: no database\n[^\n]*handler\.js:2\n/);
  });
});

describe("an error in code that has been compiled", () => {
  const map = { version: 3, sources: ["../src/handler.ts"], names: [], mappings: ";;;;;;;;;CAUC" };
  const code = `\n\n\n\n\n\n\n\n\n exports.main = () => { throw new Error("mapped"); };\n//# sourceMappingURL=`;
  const inline = `data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString("base64")}`;
  const rows: { name: string; files: Record<string, string> }[] = [
    { name: "inline", files: { "handler.js": `${code}${inline}\n` } },
    {
      name: "in a file",
      files: { "handler.js": `${code}handler.js.map\n`, "handler.js.map": JSON.stringify(map) },
    },
  ];
  test.each(rows)("is told where its author wrote it: map $name", async ({ files }) => {
    const { url, stderr } = await startFunction(files);
    await send(url);
    await expect.poll(stderr).toMatch(/Error: mapped\n\s+at .*\/src\/handler\.ts:11:2\)/);
  });

  test("is told as it is when the map is none", async () => {
    const { url, stderr } = await startFunction({ "handler.js": `${code}nowhere.map\n` });
    await send(url);
    await expect.poll(stderr).toMatch(/Error: mapped\n\s+at .*handler\.js:10:\d+\)/);
  });
});
