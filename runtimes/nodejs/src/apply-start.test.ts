import { describe, expect, test } from "vitest";
import { failToStart, send, startFunction } from "./testing/running-function.ts";

const program = (condition = "") =>
  `const http = require("http"); ${condition} http.createServer((request, response) =>
    response.end(JSON.stringify([process.env.MODE, process.env.NODE_ENV, global.before, process.argv.slice(2)]))).listen(process.env.PORT || 3000);`;
const script = (start: string) => JSON.stringify({ scripts: { start } });

describe("a program is started as its script start says", () => {
  test.each([
    ["with variables, modules and arguments", program(), {}, '["x","staging","pre",["--flag"]]'],
    [
      "as the main program",
      program("if (require.main === module)"),
      {},
      '["x","staging","pre",["--flag"]]',
    ],
    [
      "but for values of the user's",
      program(),
      { MODE: "mine", NODE_ENV: "test" },
      '["mine","test","pre",["--flag"]]',
    ],
    [
      "also next to the platform's values",
      program(),
      { NODE_ENV: "production" },
      '["x","staging","pre",["--flag"]]',
    ],
  ])("%s", async (_, code, env, body) => {
    const { url, stderr } = await startFunction(
      {
        "srv.js": code,
        "pre.js": `global.before = "pre";`,
        "package.json": script(
          "cross-env MODE=x NODE_ENV=staging node --watch -r ./pre.js ./srv --flag",
        ),
      },
      env,
    );
    expect((await send(url)).body).toBe(body);
    expect(stderr()).toContain('package.json: "--watch" of the script start has no effect here');
  });

  test("with --import", async () => {
    const { url } = await startFunction({
      "srv.mjs": `import http from "node:http"; http.createServer((request, response) => response.end(globalThis.before)).listen(3000);`,
      "pre.mjs": `globalThis.before = await "pre";`,
      "package.json": script("node --import ./pre.mjs srv.mjs"),
    });
    expect((await send(url)).body).toBe("pre");
  });

  test("as server.js, without a script", async () => {
    const { url } = await startFunction({ "server.js": program() });
    expect((await send(url)).status).toBe(200);
  });

  test("by Google's framework", async () => {
    const { url } = await startFunction({
      "index.js": `exports.hello = (req, res) => { res.send("hello"); };`,
      "package.json": script("functions-framework --target=hello"),
    });
    expect((await send(url)).body).toBe("hello");
  });
});

test("a module before it that does not exist is named", async () => {
  const { code, stderr } = await failToStart({
    "srv.js": program(),
    "package.json": script("node -r ./none.js srv.js"),
  });
  expect(code).toBe(1);
  expect(stderr).toContain("loading ./none.js, which package.json names by --require");
});
