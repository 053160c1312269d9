/** One event at a time in each thread of a Lambda handler (contract 8.4), and as many threads as calls need. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { get, request } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type RunningFunction,
  send,
  startFunction,
  startWarmProcess,
} from "../testing/running-function.ts";

/** Keeps its event in a variable of the module; with `?wait`, until a file of that name exists. */
const handler = `
const { existsSync, writeFileSync } = require("node:fs"), { threadId } = require("node:worker_threads");
const { setTimeout: pause } = require("node:timers/promises");
let current, seen = 0;
exports.handler = async (event) => {
  current = event.requestContext.requestId;
  seen++;
  const name = event.rawQueryString;
  if (name) writeFileSync(current + ".begun", "");
  while (name && !existsSync(name)) await pause(5);
  return { statusCode: 200, body: JSON.stringify({ own: current === event.requestContext.requestId, threadId, seen, path: event.rawPath }) };
};`;

interface Report {
  own: boolean;
  threadId: number;
  seen: number;
  path: string;
}

async function ask(fn: RunningFunction, path = "/"): Promise<Report> {
  const { status, body } = await send(fn.url + path);
  expect({ status, body }).toMatchObject({ status: 200 });
  return JSON.parse(body) as Report;
}

const begun = ({ directory }: RunningFunction) =>
  readdirSync(directory).filter((name) => name.endsWith(".begun")).length;

const release = ({ directory }: RunningFunction) => writeFileSync(join(directory, "go"), "");

describe("a Lambda handler", () => {
  test("has one event at a time, in one thread where calls are quick", async () => {
    const fn = await startFunction(handler);
    for (let seen = 1; seen <= 20; seen++)
      expect(await ask(fn)).toEqual({ own: true, threadId: 0, seen, path: "/" });
    const quick = await Promise.all(Array.from({ length: 20 }, () => ask(fn, "/a")));
    for (const report of quick) expect(report).toMatchObject({ own: true, path: "/a" });
  });

  test("has more threads for calls that take long, each with variables of its own", async () => {
    const fn = await startFunction(handler);
    const waiting = Array.from({ length: 4 }, (_, i) => ask(fn, `/${i}?go`));
    await expect.poll(() => begun(fn), { timeout: 30_000 }).toBe(4);
    // Those that wait keep others from none of the requests.
    expect(await ask(fn, "/next")).toMatchObject({ own: true, seen: 1, path: "/next" });
    release(fn);
    const reports = await Promise.all(waiting);
    expect(reports.map(({ own, path }) => ({ own, path }))).toEqual(
      [0, 1, 2, 3].map((i) => ({ own: true, path: `/${i}` })),
    );
    expect(new Set(reports.map(({ threadId }) => threadId)).size).toBe(4);
    expect(reports.map(({ threadId }) => threadId)).toContain(0);
    // The first is preferred again when all are free.
    expect(await ask(fn)).toMatchObject({ threadId: 0 });
  });

  test.each(["0", "50"])("has all events in one thread with SERVER_CONCURRENCY=%s", async (n) => {
    const fn = await startFunction(handler, { SERVER_CONCURRENCY: n });
    const waiting = Array.from({ length: 4 }, () => ask(fn, "/?go"));
    await expect.poll(() => begun(fn)).toBe(4);
    release(fn);
    const reports = await Promise.all(waiting);
    expect(new Set(reports.map(({ threadId }) => threadId))).toEqual(new Set([0]));
    expect(reports.filter(({ own }) => own).length).toBe(1);
  });

  test("of a stream has all events in one thread", async () => {
    const fn = await startFunction(
      handler
        .replace("async (event) =>", "awslambda.streamifyResponse(async (event, stream) =>")
        .replace("return { statusCode: 200, body:", "stream.end(")
        .replace("path: event.rawPath }) };\n}", "path: event.rawPath }));\n})"),
    );
    const waiting = Array.from({ length: 3 }, () => ask(fn, "/?go"));
    await expect.poll(() => begun(fn)).toBe(3);
    release(fn);
    for (const report of await Promise.all(waiting)) expect(report.threadId).toBe(0);
  });

  test("waits for its turn where the memory limit holds no further thread", async () => {
    const fn = await startFunction(handler, { NODE_OPTIONS: "--max-old-space-size=24" });
    const waiting = Array.from({ length: 3 }, () => ask(fn, "/?go"));
    await expect.poll(() => begun(fn)).toBe(1);
    release(fn);
    for (const report of await Promise.all(waiting))
      expect(report).toMatchObject({ own: true, threadId: 0 });
    expect(fn.stderr()).toBe("");
  });

  test("refuses more than may wait with 503", async () => {
    const fn = await startFunction(handler, {
      NODE_OPTIONS: "--max-old-space-size=24",
      SERVER_QUEUE_LENGTH: "2",
    });
    let refused = 0;
    const all = Array.from({ length: 5 }, () =>
      send(`${fn.url}/?go`).then((answer) => {
        if (answer.status === 503) refused++;
        return answer;
      }),
    );
    await expect.poll(() => refused).toBe(2);
    release(fn);
    const answers = await Promise.all(all);
    expect(answers.filter(({ status }) => status === 200).length).toBe(3);
    expect(answers.find(({ status }) => status === 503)?.headers["retry-after"]).toBe("1");
  });
});

/** The first event keeps the main thread until the file `go` exists; all others come to another thread. */
async function occupied(code: string, env: Record<string, string> = {}) {
  const fn = await startFunction(
    `const { existsSync, writeFileSync } = require("node:fs"), { threadId } = require("node:worker_threads");
     const { setTimeout: pause } = require("node:timers/promises");
     exports.handler = async (event, context) => {
       if (event.rawPath !== "/hold") return act(event, context);
       writeFileSync("held.begun", "");
       while (!existsSync("go")) await pause(5);
       return { statusCode: 200, body: String(threadId) };
     };\n${code}`,
    env,
  );
  const held = send(`${fn.url}/hold`);
  held.catch(() => {}); // a row may end before it does
  await expect.poll(() => begun(fn)).toBe(1);
  return { fn, held };
}

describe("in a further thread, a Lambda handler", () => {
  test("has its request's event and context, and answers with headers, cookies and bytes", async () => {
    const { fn } = await occupied(
      `async function act(event, context) { return { statusCode: 201, headers: { "x-thread": threadId > 0, "x-b": event.headers["X-B"] }, cookies: ["a=1", "b=2"], isBase64Encoded: true,
         body: Buffer.from([context.functionName, context.awsRequestId === event.requestContext.requestId, context.getRemainingTimeInMillis() > 1000, event.body, event.queryStringParameters.x].join()).toString("base64") }; }`,
    );
    const { status, headers, body } = await send(`${fn.url}/?x=1`, {
      method: "POST",
      headers: { "x-b": "c", "content-type": "application/json" },
      body: '{"a":1}',
    });
    expect({ status, body }).toEqual({ status: 201, body: 'hello,true,true,{"a":1},1' });
    expect(headers).toMatchObject({
      "x-thread": "true",
      "x-b": "c",
      "set-cookie": ["a=1", "b=2"],
    });
  });

  test.each([
    ["text", `"text"`, "text"],
    ["data", `({ a: [1, null] })`, '{"a":[1,null]}'],
    ["bytes", `({ statusCode: 200, body: Buffer.from("bytes") })`, "bytes"],
    [
      "values that JSON makes",
      `({ statusCode: 200, body: { at: new Date(0), toJSON: () => ({ made: true }) } })`,
      '{"made":true}',
    ],
  ])("answers with %s", async (_what, value, body) => {
    const { fn } = await occupied(`const act = () => ${value};`);
    expect(await send(fn.url)).toMatchObject({ status: 200, body });
  });

  test("calls back", async () => {
    const fn = await startFunction(
      `const { threadId } = require("node:worker_threads");
       exports.handler = (event, context, callback) => { if (event.rawPath !== "/hold") callback(null, { statusCode: 200, body: String(threadId > 0) }); };`,
    );
    void send(`${fn.url}/hold`).catch(() => {});
    expect((await send(fn.url)).body).toBe("true");
  });

  test("fails as in the first: 500, with the error and its request in the log", async () => {
    const { fn } = await occupied(
      `async function act(event) { throw event.rawPath === "/text" ? "for you" : new TypeError("secret"); }`,
    );
    const failed = await send(`${fn.url}/a`, { headers: { "x-request-id": "one" } });
    expect(failed).toMatchObject({ status: 500, body: "Internal server error" });
    expect(fn.stderr()).toMatch(
      /request one \(GET \/a\): the handler threw: TypeError: secret\n {4}at act \(.*handler\.js:9:/,
    );
    expect(fn.stderr()).not.toContain("server.cjs");
    expect(await send(`${fn.url}/text`)).toMatchObject({ status: 500, body: "for you" });
  });

  test.each([
    ["rejects a promise that nothing awaits", `Promise.reject(new Error("stray"));`],
    ["throws in a timer", `setTimeout(() => { throw new Error("stray"); });`],
    ["ends its process", `process.exit(3);`],
  ])("that %s is answered 500, and others go on", async (_what, act) => {
    const { fn, held } = await occupied(
      `function act(event) { if (event.rawPath === "/fail") { ${act} return new Promise(() => {}); } return { statusCode: 200, body: String(threadId > 0) }; }`,
    );
    expect(await send(`${fn.url}/fail`)).toMatchObject({
      status: 500,
      body: "Internal server error",
    });
    expect(await send(fn.url)).toMatchObject({ status: 200, body: "true" });
    writeFileSync(join(fn.directory, "go"), "");
    expect(await held).toMatchObject({ status: 200, body: "0" });
    expect(fn.stderr()).toMatch(
      /stray|the Function ended the thread of its event: Error: process\.exit\(3\)/,
    );
  });

  test("that never ends is ended with its thread at its time limit, and others go on", async () => {
    const { fn, held } = await occupied(
      `function act(event) { if (event.rawPath === "/spin") { writeFileSync("spin.begun", ""); for (;;); } return { statusCode: 200, body: "next" }; }`,
      { FUNC_TIMEOUT: "4" },
    );
    const spinning = send(`${fn.url}/spin`);
    await expect.poll(() => begun(fn)).toBe(2);
    writeFileSync(join(fn.directory, "go"), "");
    expect(await held).toMatchObject({ status: 200 });
    expect(await spinning).toMatchObject({ status: 408 });
    expect((await send(fn.url)).body).toBe("next");
  });

  test("logs with the id of its invocation", async () => {
    const { fn } = await occupied(`function act() { console.log("at work"); return "done"; }`, {
      FUNC_LOG_FORMAT: "json",
    });
    await send(fn.url, { headers: { "x-request-id": "one" } });
    await expect.poll(fn.stdout).toContain('"message":"at work","invocation":"one"');
  });

  test("passes on the trace of its request", async () => {
    const { fn } = await occupied(
      `async function act(event) { const { method, headers } = await fetch(event.queryStringParameters.url).then((answer) => answer.json()); return headers.traceparent; }`,
    );
    const { createServer } = await import("node:http");
    const echo = createServer(({ headers }, response) =>
      response.end(JSON.stringify({ headers })),
    ).listen(0, "127.0.0.1");
    await new Promise((resolve) => echo.once("listening", resolve));
    const { port } = echo.address() as { port: number };
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    const { body } = await send(`${fn.url}/?url=http://127.0.0.1:${port}/`, {
      headers: { traceparent },
    });
    echo.close();
    expect(body).toBe(traceparent);
  });

  test("is loaded with its variables, started and stopped as the first", async () => {
    const { fn } = await occupied(
      `exports.start = () => writeFileSync("started-" + threadId, process.env.OWN);
       exports.stop = () => writeFileSync("stopped-" + threadId, "");
       const act = () => String(threadId);`,
      { OWN: "value" },
    );
    const { body: id } = await send(fn.url);
    expect(Number(id)).toBeGreaterThan(0);
    for (const each of ["0", id])
      expect(readFileSync(join(fn.directory, `started-${each}`), "utf8")).toBe("value");
    writeFileSync(join(fn.directory, "go"), "");
    fn.process.kill("SIGTERM");
    expect(await fn.exited).toBe(0);
    for (const each of ["0", id])
      expect(existsSync(join(fn.directory, `stopped-${each}`))).toBe(true);
    expect(fn.stderr()).toBe("");
  });

  test("that cannot be loaded a second time leaves events in line, and the log says so once", async () => {
    const { fn, held } = await occupied(
      `if (threadId > 0) throw new Error("only once"); const act = () => String(threadId);`,
    );
    const next = send(fn.url);
    await expect.poll(fn.stderr).toContain("loading the code in a further thread");
    expect(fn.stderr()).toContain("only once");
    writeFileSync(join(fn.directory, "go"), "");
    expect(await held).toMatchObject({ body: "0" });
    expect(await next).toMatchObject({ body: "0" });
  });

  test("opens no server a second time", async () => {
    const { fn } = await occupied(
      `require("node:http").createServer().listen(Number(process.env.SIDE)); const act = () => String(threadId > 0);`,
      { SIDE: String(await (await import("@spry/test-kit")).freePort()) },
    );
    expect((await send(fn.url)).body).toBe("true");
    expect(fn.stderr()).toBe("");
  });
});

test("a handler in TypeScript, with files and packages of its own, has further threads", async () => {
  const fn = await startFunction({
    "handler.ts": handler
      .replace(
        `const { existsSync, writeFileSync } = require("node:fs")`,
        `import { existsSync, writeFileSync } from "node:fs";\nimport { threadId as known } from "own";\nimport { own } from "./util.js";\nconst none: string | undefined = own`,
      )
      .replace(/, \{ threadId \} = require\("node:worker_threads"\)/, ", threadId: number = known")
      .replace(
        /^const \{ setTimeout: pause \}.*$/m,
        `const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));`,
      )
      .replace(
        "exports.handler = async (event) =>",
        "export const handler = async (event: any) =>",
      ),
    "util.ts": "export const own: string = 'own';",
    "package.json": '{"type":"module"}',
    "node_modules/own/package.json": '{"type":"module","exports":"./index.js"}',
    "node_modules/own/index.js": 'export { threadId } from "node:worker_threads";',
  });
  const waiting = Array.from({ length: 3 }, () => ask(fn, "/?go"));
  await expect.poll(() => begun(fn), { timeout: 30_000 }).toBe(3);
  release(fn);
  const reports = await Promise.all(waiting);
  expect(new Set(reports.map(({ threadId }) => threadId)).size).toBe(3);
});

test("a process that waited for its Function has further threads, too", async () => {
  const { hand, directory } = startWarmProcess();
  const url = await hand(handler, { OWN: "value" });
  const at = join(directory, "function");
  const waiting = Array.from({ length: 2 }, () => send(`${url}/?go`));
  const begunThere = () => readdirSync(at).filter((name) => name.endsWith(".begun")).length;
  await expect.poll(begunThere, { timeout: 30_000 }).toBe(2);
  writeFileSync(join(at, "go"), "");
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
});

describe("events that wait", () => {
  test("leave the line when their client does", async () => {
    const fn = await startFunction(handler, { NODE_OPTIONS: "--max-old-space-size=24" });
    const first = ask(fn, "/?go");
    first.catch(() => {});
    await expect.poll(() => begun(fn)).toBe(1);
    const gone = get(`${fn.url}/gone?go`);
    gone.on("error", () => {});
    await expect
      .poll(async () => (await send(`${fn.url}/metrics`)).body)
      .toMatch(/in_flight_requests 2/);
    gone.destroy();
    await expect
      .poll(async () => (await send(`${fn.url}/metrics`)).body)
      .toMatch(/in_flight_requests 1/);
    release(fn);
    expect(await first).toMatchObject({ seen: 1 });
    expect(await ask(fn)).toMatchObject({ seen: 2 });
  });

  test("are answered 408 at their time limit, and one whose client has gone keeps its thread until it is done", async () => {
    const fn = await startFunction(handler, {
      NODE_OPTIONS: "--max-old-space-size=24",
      FUNC_TIMEOUT: "2",
    });
    const gone = request(`${fn.url}/?go`).end();
    gone.on("error", () => {});
    await expect.poll(() => begun(fn)).toBe(1);
    gone.destroy();
    // Until the first's time is over.
    const next = await send(fn.url);
    expect(next.status === 408 || JSON.parse(next.body).seen === 2).toBe(true);
    expect(await ask(fn)).toMatchObject({ threadId: 0 });
  });
});
