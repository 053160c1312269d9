import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { constants } from "node:os";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  failToStart,
  noFirstProcess,
  send,
  signalFirstProcess,
  startFunction,
} from "./testing/running-function.ts";

const hello = 'exports.main = () => "hello";';

describe("a Function is loaded", () => {
  const forms: { name: string; files: Record<string, string>; env?: Record<string, string> }[] = [
    {
      name: "CommonJS",
      files: { "handler.js": 'module.exports = { main() { return "hello"; } };' },
    },
    {
      name: "an ES module by package.json",
      files: {
        "handler.js": 'export const main = async () => "hello";',
        "package.json": '{"type":"module"}',
      },
    },
    {
      name: "an ES module by its name",
      files: { "handler.mjs": 'export function main() { return "hello"; }' },
    },
    {
      name: "an ES module by its syntax",
      files: { "handler.js": 'export function main() { return "hello"; }' },
    },
    {
      name: "an ES module that waits",
      files: {
        "handler.mjs":
          'const text = await Promise.resolve("hello"); export const main = () => text;',
      },
    },
    {
      name: "a default export",
      files: { "handler.mjs": 'export default { main: () => "hello" };' },
    },
    {
      name: "CommonJS by its name",
      files: { "handler.cjs": hello, "package.json": '{"type":"module"}' },
    },
    {
      name: "TypeScript",
      files: { "handler.ts": 'export const main = (event: { data?: string }): string => "hello";' },
    },
    {
      name: "TypeScript of an ES module package",
      files: {
        "handler.ts": 'import { text } from "./text.ts"; export const main = () => text;',
        "text.ts": 'export const text: string = "hello";',
        "package.json": '{"type":"module"}',
      },
    },
    ...["handler.ts", "handler.mts", "handler.js"].map((file) => ({
      name: `TypeScript that imports types without saying so, in ${file}`,
      files: {
        [file]: `import { Context, Event } from "no-such-types";
import { hello } from "./words.mjs";
export const main = (event: Event, context: Context): string => hello;`,
        "words.mjs": `export const hello = "hello";`,
      },
    })),
    {
      name: "TypeScript that is called JavaScript",
      files: {
        "handler.js": 'module.exports = { main: (event: { data?: string }): string => "hello" };',
      },
    },
    {
      name: "an ES module in TypeScript that is called JavaScript",
      files: {
        "handler.js":
          'interface A { a: string }\nexport function main(event: A, ...rest: unknown[]): string { return "hello"; }',
      },
    },
    {
      name: "TypeScript that is called JavaScript in a module package",
      files: {
        "handler.js": 'export const main = (event: unknown): string => "hello";',
        "package.json": '{"type":"module"}',
      },
    },
    {
      name: "package.json's main",
      files: { "src/app.js": hello, "package.json": '{"main":"src/app.js"}' },
    },
    { name: "index.js, when there is nothing else", files: { "index.js": hello } },
    {
      name: "build/index.js, where the build of func's TypeScript puts it",
      files: { "build/index.js": hello },
    },
    {
      name: "index.mjs, when package.json's main is not there",
      files: {
        "index.mjs": `export const main = () => "hello";`,
        "package.json": '{"main":"src/app.js"}',
      },
    },
    {
      name: "handler.js before package.json's main",
      files: { "handler.js": hello, "index.js": "throw 1", "package.json": '{"main":"index.js"}' },
    },
    {
      name: "other names by MOD_NAME and FUNC_HANDLER",
      files: { "app.js": 'exports.run = () => "hello";' },
      env: { MOD_NAME: "app", FUNC_HANDLER: "run" },
    },
    {
      name: "with dependencies",
      files: {
        "handler.js": 'exports.main = () => require("greeting");',
        "node_modules/greeting/index.js": 'module.exports = "hello";',
      },
    },
  ];
  test.each(forms)("from $name", async ({ files, env = {} }) => {
    const { url, stderr } = await startFunction(files, env);
    expect((await send(url)).body).toBe("hello");
    expect(stderr()).not.toMatch(/ExperimentalWarning(?!: Type Stripping)/);
  });

  const mistakes: { name: string; files: Record<string, string>; says: RegExp }[] = [
    {
      name: "a syntax error",
      files: { "handler.js": "module.exports = {\n  main( {\n" },
      says: /^loading handler\.js: SyntaxError: .*\n[^]*handler\.js:\d/,
    },
    {
      name: "a syntax error in an ES module",
      files: { "handler.mjs": "export const main = ;" },
      says: /^loading handler\.mjs: SyntaxError: Unexpected token ';'\n[^]*handler\.mjs:1/,
    },
    {
      name: "a module that is not there",
      files: { "handler.js": 'require("left-out");' },
      says: /^loading handler\.js: Cannot find module 'left-out'\n[^]*at .*handler\.js:1/,
    },
    {
      name: "an error while loading",
      files: { "handler.js": '\nthrow new TypeError("no configuration");' },
      says: /^loading handler\.js: TypeError: no configuration\n[^]*handler\.js:2/,
    },
    {
      name: "an error of Node.js' with properties",
      files: { "handler.js": "exports.main = () => 1;\nnew URL(process.env.NONE);" },
      says: /^loading handler\.js: TypeError: Invalid URL\n[^]*handler\.js:2\nnew URL\(process.env.NONE\);\n\^/,
    },
    {
      name: "TypeScript that must be compiled",
      files: { "handler.js": "const a: number = 1;\nenum E { b }\nexport const main = () => E.b;" },
      says: /^loading handler\.js: SyntaxError: TypeScript enum is not supported [^\n]*\n[^\n]*handler\.js:2\n(?:.*\n)*enum E \{ b \}\n\^+/,
    },
    {
      name: "no main",
      files: { "handler.js": "exports.greet = exports.other = () => {};" },
      says: /^loading handler\.js: it exports no function main; there is other, greet|greet, other\n$/,
    },
    {
      name: "no exports",
      files: { "handler.js": "" },
      says: /^loading handler\.js: it exports no function main; there are no exports at all\n$/,
    },
    {
      name: "a main that is no function",
      files: { "handler.js": "exports.main = 1;" },
      says: /^loading handler\.js: it exports no function main; there is main\n$/,
    },
    {
      name: "another target",
      files: {
        "handler.js": `process.env.FUNCTION_TARGET = "b"; require("@google-cloud/functions-framework").http("a", () => {});`,
      },
      says: /^loading the Function: there is no b, which FUNCTION_TARGET names; there is a\n$/,
    },
    {
      name: "no file",
      files: { "package.json": "{}" },
      says: /^loading the Function: there is no handler\.js, nor handler\.mjs, /,
    },
    {
      name: "a broken package.json",
      files: { "handler.js": hello, "package.json": "{" },
      says: /^loading package\.json: /,
    },
  ];
  test.each(mistakes)("or says why not: $name", async ({ files, says }) => {
    const { code, stderr } = await failToStart(files);
    expect(code).toBe(1);
    expect(stderr).toMatch(says);
  });

  test("or says which setting is wrong", async () => {
    const { code, stderr } = await failToStart(hello, { FUNC_TIMEOUT: "soon" });
    expect(code).toBe(1);
    expect(stderr).toMatch(/FUNC_TIMEOUT=soon: expected a number/);
  });
});

describe("a Function", () => {
  test("has its context and environment, and nothing of the runtime's", async () => {
    const { url } = await startFunction(
      `exports.main = (event, context) => ({ context, env: process.env.MY_SETTING, ready: process.env.SPRY_READY_FD });`,
      { MY_SETTING: "x", FUNC_TIMEOUT: "30" },
    );
    expect(JSON.parse((await send(url)).body)).toEqual({
      context: {
        "function-name": "hello",
        runtime: "nodejs24",
        namespace: "default",
        timeout: 30,
        "body-size-limit": 1,
      },
      env: "x",
    });
  });

  test("survives what it throws beside a request, and the log has the stack", async () => {
    const { url, stderr } = await startFunction(`exports.main = () => {
      setTimeout(() => { throw new Error("in a timer"); });
      Promise.reject(new Error("nobody listens"));
      return "ok";
    };`);
    expect((await send(url)).body).toBe("ok");
    await expect.poll(stderr).toMatch(/uncaught exception: Error: in a timer\n\s+at .*handler\.js/);
    await expect
      .poll(stderr)
      .toMatch(/unhandled rejection: Error: nobody listens\n\s+at .*handler\.js/);
    expect((await send(url)).body).toBe("ok");
  });

  test("may make spans that nobody records", async () => {
    const { url } =
      await startFunction(`exports.main = ({ tracer }) => tracer.startActiveSpan("work", (span) => {
      span.setAttribute("a", 1).addEvent("b");
      tracer.startSpan("child").end();
      span.end();
      return "traced";
    });`);
    expect((await send(url)).body).toBe("traced");
  });

  test("logs its requests when it is told to", async () => {
    const { url, stdout } = await startFunction(hello, { KYMA_INTERNAL_LOGGER_ENABLED: "true" });
    await send(`${url}/a?b=1`, { headers: { "user-agent": "me" } });
    await expect
      .poll(stdout)
      .toMatch(
        /^127\.0\.0\.1 - - \[\d\d\/\w{3}\/\d{4}:[\d:]{8} \+0000\] "GET \/a\?b=1 HTTP\/1\.1" 200 - "-" "me"\n$/,
      );
  });
});

describe("a handler that blocks the event loop", () => {
  test("in the very first request ends the process, too", async () => {
    const fn = await startFunction(`exports.main = () => { for (;;); };`, { FUNC_TIMEOUT: "1" });
    await expect(send(fn.url)).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect(await fn.exited).toBe(1);
    expect(fn.stderr()).toMatch(
      /blocking the event loop for 2 s\n[^]* {4}at .*main \(.*handler\.js:1:\d+\)\n/,
    );
    // Its own frames are nobody's business.
    expect(fn.stderr()).not.toContain("server.cjs");
  });

  test("ends the process, which says where it hangs", async () => {
    const fn = await startFunction(
      `function spin(n) { for (;;) n++; }\nexports.main = (event) => event.data ? spin(0) : "ok";`,
      { FUNC_TIMEOUT: "1" },
    );
    expect((await send(fn.url)).body).toBe("ok");
    // What watches is a process of its own.
    const children = () => spawnSync("pgrep", ["-P", String(fn.process.pid)]).stdout.toString();
    await expect.poll(children).not.toBe("");
    const stuck = send(fn.url, {
      method: "POST",
      headers: { "content-type": "text/plain" },
      body: "x",
    });
    await expect(stuck).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect(await fn.exited).toBe(1);
    expect(fn.stderr()).toMatch(
      /the handler has been blocking the event loop for 2 s\n[^]* {4}at spin \(.*handler\.js:1:\d+\)\n {4}at .*main \(/,
    );
  }, 60_000);
});

test("a handler that fills the heap ends the process, which says so", async () => {
  const fn = await startFunction(
    `exports.main = () => { const all = []; for (;;) all.push({ x: new Array(100).fill(1.5) }); };`,
    { NODE_OPTIONS: "--max-old-space-size=40" },
  );
  await expect(send(fn.url)).rejects.toThrow(/socket hang up|ECONNRESET/);
  // Not its streams' end: what watches it may have them a while longer.
  if (fn.process.signalCode === null) await once(fn.process, "exit");
  expect(fn.process.signalCode).toBe("SIGABRT");
  await expect.poll(fn.stderr).toContain("JavaScript heap out of memory");
});

describe("a Function with a limit on what it does at a time", () => {
  test("lets others wait, and refuses more with 503", async () => {
    const { url, directory } = await startFunction(
      `const { existsSync } = require("node:fs"), { setTimeout: pause } = require("node:timers/promises");
       let running = 0;
       exports.main = async () => { const now = ++running; while (!existsSync("go")) await pause(10); running--; return now; };`,
      { SERVER_CONCURRENCY: "2", SERVER_QUEUE_LENGTH: "1" },
    );
    let answered = 0;
    const asked = Array.from({ length: 5 }, () => send(url).finally(() => answered++));
    await expect.poll(() => answered).toBe(2);
    writeFileSync(join(directory, "go"), "");
    const answers = await Promise.all(asked);
    const bodies = answers.filter(({ status }) => status === 200).map(({ body }) => Number(body));
    expect(bodies.length).toBe(3);
    expect(Math.max(...bodies)).toBe(2);
    const refused = answers.filter(({ status }) => status === 503);
    expect(refused.map(({ headers }) => headers["retry-after"])).toEqual(["1", "1"]);
    expect((await send(url)).status).toBe(200);
    expect((await send(`${url}/healthz`)).status).toBe(200);
  });
});

describe("a runtime that is told to stop", () => {
  test.skipIf(noFirstProcess).each(["SIGTERM", "SIGINT"] as const)(
    `by %s while it loads ends at once, as the first process of a container too${noFirstProcess ? ` (${noFirstProcess})` : ""}`,
    async (signal) => {
      const source = `console.log("loading"); await new Promise((done) => setTimeout(done, 60_000));`;
      const { code, stderr } = await signalFirstProcess({ "handler.mjs": source }, signal);
      expect(code).toBe(128 + constants.signals[signal]);
      expect(stderr).toBe("");
    },
  );

  /** Says when it has begun, and is done when its time is over. */
  const taking = `exports.main = (event) => {
    const { ms } = event.extensions.request.query;
    console.log("begun");
    return new Promise((done) => setTimeout(done, Number(ms), "done"));
  };`;

  test("finishes what is under way, and answers for a moment more", async () => {
    const fn = await startFunction(taking, { FUNC_SHUTDOWN_DELAY_MS: "2000" });
    const slow = send(`${fn.url}/?ms=2500`);
    await expect.poll(fn.stdout).toBe("begun\n");
    fn.process.kill("SIGTERM");
    const late = async () => {
      const { status, body, headers } = await send(`${fn.url}/?ms=1`);
      return [status, body, headers["connection"]];
    };
    await expect.poll(late).toEqual([200, "done", "close"]);
    expect(await slow).toMatchObject({ status: 200, body: "done" });
    expect(await fn.exited).toBe(0);
    await expect(send(`${fn.url}/?ms=1`)).rejects.toThrow(/ECONNREFUSED/);
  });

  test("does not wait for heads of requests that do not come", async () => {
    const fn = await startFunction(taking);
    const socket = connect(Number(new URL(fn.url).port), "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
    socket.write("GET / HTTP/1.1\r\nhost: x\r\na: ");
    // What comes behind it has its answer, so that is there too.
    expect((await send(`${fn.url}/?ms=1`)).body).toBe("done");
    const slow = send(`${fn.url}/?ms=7000`);
    await expect.poll(fn.stdout).toBe("begun\nbegun\n");
    fn.process.kill("SIGTERM");
    expect((await slow).body).toBe("done");
    expect(await fn.exited).toBe(0);
  });

  test("does not wait for connections on which nothing happens any more", async () => {
    const fn = await startFunction(taking);
    const agent = new Agent({ keepAlive: true });
    const ask = async (ms: number) => {
      const asked = request(`${fn.url}/?ms=${ms}`, { agent }).end();
      const [answer] = (await once(asked, "response")) as [NodeJS.ReadableStream];
      answer.resume();
      await once(answer, "end");
    };
    const both = Promise.all([ask(1), ask(300)]);
    await expect.poll(fn.stdout).toBe("begun\nbegun\n");
    fn.process.kill("SIGTERM");
    await both;
    expect(await fn.exited).toBe(0);
    agent.destroy();
  });
});
