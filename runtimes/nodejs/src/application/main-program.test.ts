import { describe, expect, test } from "vitest";
import { failToStart, send, startFunction, startWarmProcess } from "../testing/running-function.ts";

const listen = `http.createServer((request, response) => response.end("main " + process.argv.length)).listen(process.env.PORT || 3000)`;

describe("a program that listens only as the main one is served, if it asks by", () => {
  test.each([
    ["require.main", `const http = require("http"); if (require.main === module) ${listen};`],
    [
      "module.parent, while it exports something else and has timers",
      `const http = require("http"); setInterval(() => {}, 1000); const start = () => ${listen};
       if (!module.parent) start(); module.exports = { start };`,
    ],
    ["import.meta.main", `import http from "node:http"; if (import.meta.main) ${listen};`],
    [
      "process.argv",
      `import http from "node:http"; import { fileURLToPath } from "node:url";
       if (process.argv[1] === fileURLToPath(import.meta.url)) setTimeout(() => ${listen}, 50);`,
    ],
    [
      "the URL of its file",
      `import http from "node:http"; import { pathToFileURL } from "node:url"; const [, script] = process.argv;
       const self = import.meta.url; if (self === pathToFileURL(script).href) ${listen};`,
    ],
    [
      "require.main, in TypeScript",
      {
        "handler.cts": `const http = require("http"); const a: number = 1; if (require.main === module) ${listen};`,
      },
    ],
    [
      "require.main, in another file",
      {
        "handler.js": `require("./start").start(module);`,
        "start.js": `const http = require("http"); exports.start = (module) => { if (require.main === module) ${listen}; };`,
      },
    ],
  ] as [name: string, files: string | Record<string, string>][])("%s", async (_, files) => {
    const { url } = await startFunction(files);
    expect(await send(`${url}/a`)).toMatchObject({ status: 200, body: "main 2" });
    expect(
      await send(`${url}/healthz`, { headers: { "user-agent": "kube-probe/1" } }),
    ).toMatchObject({ status: 200, body: "OK" });
  });
});

test("a program that exports a handler is not started again", async () => {
  const { url } = await startFunction(
    `if (require.main === module) console.log("main"); exports.handler = async () => require.main === module;`,
  );
  expect((await send(url)).body).toBe("false");
});

test.each([
  [
    "does nothing",
    `if (require.main === module) setTimeout(() => {}, 100);`,
    /as the main program it does not listen/,
  ],
  [
    "fails",
    `if (require.main === module) throw new Error("broken");`,
    /Error: broken\n[^]*handler\.js:1/,
  ],
  ["ends", `if (require.main === module) process.exit(7);`, /^$/],
])("a main program that %s does not start", async (what, code, says) => {
  const failed = await failToStart(code);
  expect(failed.code).toBe(what === "ends" ? 7 : 1);
  expect(failed.stderr).toMatch(says);
});

test("processes and threads that a main program starts are not the runtime", async () => {
  const { url } = await startFunction({
    "handler.js": `const http = require("http"), { fork } = require("child_process"), { Worker } = require("worker_threads");
      if (require.main === module) http.createServer((request, response) => {
        fork("./child.js").once("message", (a) => new Worker("./child.js").once("message", (b) => response.end(a + b)));
      }).listen(3000);`,
    "child.js": `const { parentPort } = require("worker_threads"); const send = parentPort ? (m) => parentPort.postMessage(m) : (m) => process.send(m, () => process.exit());
      send(process.env.SPRY_MAIN_PROGRAM ? "runtime" : "own");`,
  });
  expect((await send(url)).body).toBe("ownown");
});

test("a process that waited for its Function can start one", async () => {
  const { hand } = startWarmProcess();
  const url = await hand(
    `const http = require("http"); if (require.main === module) ${listen};`,
    {},
  );
  expect((await send(url)).body).toBe("main 2");
});

test("SIGTERM ends both processes, once requests have been answered", async () => {
  const fn = await startFunction(`const http = require("http");
    if (require.main === module) http.createServer((request, response) => { console.log("begun"); setTimeout(() => response.end("slow"), 200); }).listen(3000);`);
  const answer = send(fn.url);
  await expect.poll(fn.stdout).toBe("begun\n");
  fn.process.kill("SIGTERM");
  expect((await answer).body).toBe("slow");
  expect(await fn.exited).toBe(0);
});

test("the main program ends when the first process is killed", async () => {
  const fn = await startFunction(
    `const http = require("http"); if (require.main === module) http.createServer((request, response) => response.end(String(process.pid))).listen(3000);`,
  );
  const pid = Number((await send(fn.url)).body);
  fn.process.kill("SIGKILL");
  await expect.poll(() => isRunning(pid)).toBe(false);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("a program that listens later is not started twice because of what is preloaded", async () => {
  const fn = await startFunction(
    {
      "handler.js": `console.log("loaded"); const http = require("http"); setTimeout(() => ${listen}, 100);`,
      "../preloaded.cjs": "module.exports = process.argv[1];",
    },
    { NODE_OPTIONS: "--require ../preloaded.cjs" },
  );
  expect(await send(fn.url)).toMatchObject({ status: 200, body: "main 2" });
  expect(fn.stdout()).toBe("loaded\n");
});
