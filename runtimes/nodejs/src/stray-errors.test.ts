import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

/** Each waits for ever after what it does with `fail`; other paths answer. */
const forms: [name: string, code: string, isReplaced: boolean][] = [
  [
    "an application's",
    `module.exports = { use() {}, callback: () => (request, response) => { if (request.url === "/fail") fail(); else response.end("ok"); } };`,
    true,
  ],
  [
    "a listener's",
    `module.exports = async (req, res) => { if (req.url === "/fail") void fail(); else res.end("ok"); };`,
    true,
  ],
  [
    "a Lambda handler's",
    `exports.handler = (event, context) => { if (event.rawPath === "/fail") fail(); else context.succeed({ statusCode: 200, body: "ok" }); };`,
    true,
  ],
  [
    "main's",
    `exports.main = ({ extensions: { request } }) => { if (request.path !== "/fail") return "ok"; fail(); return new Promise(() => {}); };`,
    false,
  ],
];

const failures = {
  "unhandled rejection": `const fail = async () => { await null; throw new Error("stray"); };`,
  "rejection after a timer": `const fail = async () => { await new Promise((resolve) => setTimeout(resolve, 10)); throw new Error("stray"); };`,
  "uncaught exception": `const fail = () => void setTimeout(() => { throw new Error("stray"); }, 10);`,
};

const rows = forms.flatMap(([form, code, isReplaced]) =>
  Object.entries(failures).map(([name, fail]) => ({ form, name, code: fail + code, isReplaced })),
);

describe("a stray error ends the request that it belongs to with 500", () => {
  test.each(rows)("$form $name", async ({ code, isReplaced }) => {
    const fn = await startFunction(code);
    expect((await send(`${fn.url}/ok`)).body).toBe("ok");
    const answer = await send(`${fn.url}/fail`, { headers: { "x-request-id": "r1" } });
    expect(answer).toMatchObject({
      status: 500,
      body: "Internal server error",
      headers: { "x-request-id": "r1" },
    });
    await expect.poll(fn.stderr).toMatch(/Error: stray\n\s+at .*handler\.js/);
    await expect.poll(fn.stderr).toContain("request r1 (GET /fail)");
    if (isReplaced) expect(await fn.exited).toBe(1);
    else expect((await send(`${fn.url}/ok`)).body).toBe("ok");
  });
});

test("a program's other requests are answered before its process is replaced", async () => {
  const { url, exited, stdout, stderr } = await startFunction(
    `module.exports = (req, res) => {
      if (req.url === "/fail") return void Promise.reject(new Error("stray"));
      console.log("begun");
      setTimeout(() => res.end("slow"), 500);
    };`,
  );
  const slow = send(`${url}/slow`);
  await expect.poll(stdout).toBe("begun\n");
  expect((await send(`${url}/fail`)).status).toBe(500);
  expect((await slow).body).toBe("slow");
  expect(await exited).toBe(1);
  expect(stderr()).toContain("the Function's process ends because of an unhandled rejection");
});

test("a program that listens for stray errors itself is not replaced", async () => {
  const { url } = await startFunction(
    `process.on("unhandledRejection", () => {});
     module.exports = (req, res) => { if (req.url === "/fail") return void Promise.reject(new Error("stray")); res.end("ok"); };`,
  );
  expect((await send(`${url}/fail`)).status).toBe(500);
  expect((await send(`${url}/ok`)).body).toBe("ok");
});
