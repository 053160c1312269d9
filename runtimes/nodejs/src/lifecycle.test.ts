import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { constants, tmpdir } from "node:os";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { hasEnded } from "@spry/test-kit";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  noFirstProcess,
  send,
  signalFirstProcess,
  startFunction,
} from "./testing/running-function.ts";

const hello = 'exports.main = () => "hello";';

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
    const words = join(mkdtempSync(join(tmpdir(), "spry-words-")), "termination-log");
    writeFileSync(words, "");
    const fn = await startFunction(
      `function spin(n) { for (;;) n++; }\nexports.main = (event) => event.data ? spin(0) : "ok";`,
      { FUNC_TIMEOUT: "1", SPRY_TERMINATION_LOG: words },
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
    expect(readFileSync(words, "utf8")).toMatch(
      /^the handler has been blocking the event loop for 2 s\n {4}at spin \(/,
    );
    rmSync(dirname(words), { recursive: true });
  }, 60_000);
});

test("a handler that fills the heap ends the process, which says so", async () => {
  const fn = await startFunction(
    `exports.main = () => { const all = []; for (;;) all.push({ x: new Array(100).fill(1.5) }); };`,
    { NODE_OPTIONS: "--max-old-space-size=40" },
  );
  await expect(send(fn.url)).rejects.toThrow(/socket hang up|ECONNRESET/);
  // Not its streams' end: what watches it may have them a while longer.
  if (!hasEnded(fn.process)) await once(fn.process, "exit");
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
