import { describe, expect, test } from "vitest";
import { missingPython, pause, PythonRuntime } from "./testing.ts";

const source = `
import atexit, os, re, sys, time
calls = 0

def main(event, context):
    global calls
    request = event["extensions"]["request"]
    if request.path == "/count":
        calls += 1
        return str(calls)
    if request.path == "/sleep":
        print("asleep")
        time.sleep(float(request.query.get("s")))
        return "slept"
    if request.path == "/loop":
        while True:
            pass
    if request.path == "/swallow":
        while True:
            try:
                time.sleep(1)
            except BaseException:
                pass
    if request.path == "/regex":
        re.match(r"(a+)+$", "a" * 60 + "b")
    if request.path == "/die":
        os._exit(7)
    if request.path == "/endless":
        def endless():
            try:
                while True:
                    yield "x" * 100_000
            finally:
                print("generator closed")
        return endless()
    if request.path == "/die-with-child":
        if os.fork() == 0:
            time.sleep(1.2)
            os._exit(0)
        os._exit(7)
    if request.path == "/pid":
        return str(os.getpid())
    return "fine"
`;

test.skipIf(missingPython).each(["def", "async def"])(
  "%s: bodies take no more than a part of the memory that there is",
  async (form) => {
    await using runtime = await PythonRuntime.start(
      `
import ${form === "def" ? "threading" : "asyncio as threading"}
go = threading.Event()
${form} main(event, context):
    request = event["extensions"]["request"]
    if request.path == "/go": return go.set()
    if request.path == "/wait":
        print("begun")
        ${form === "def" ? "" : "await "}go.wait()
    return str(len(request.body.read()))
`,
      { FUNC_MEMORY_LIMIT: String(60 * 1024 * 1024) },
    );
    const body = "x".repeat(8 * 1024 * 1024);
    const post = (path: string, text: string) => runtime.call(path, { method: "POST", body: text });
    expect(await post("/", body + body)).toMatchObject({ status: 413 });
    const full = {
      status: 503,
      body: "the bodies of other requests use up the Function's memory\n",
    };
    const socket = runtime.connect().on("error", () => undefined);
    socket.write(`POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await expect.poll(() => runtime.output).toContain("begun");
    expect(await post("/", body)).toMatchObject(full);
    socket.resetAndDestroy();
    expect((await post("/", "small")).body).toBe("5");
    // The call has its body also when its client has gone.
    expect(await post("/", body)).toMatchObject(full);
    await runtime.call("/go");
    await expect
      .poll(() => post("/", body))
      .toMatchObject({ status: 200, body: String(body.length) });
  },
);

describe.skipIf(missingPython)("a synchronous handler", () => {
  test.each(["/loop", "/swallow", "/regex", "/sleep?s=60"])(
    "stuck in %s is ended with 408, its worker replaced, and nobody else harmed",
    async (path) => {
      await using runtime = await PythonRuntime.start(source, { FUNC_TIMEOUT: "4" });
      const before = await runtime.call("/pid");
      const began = Date.now();
      const stuck = runtime.call(path);
      await pause(100);
      const others = await Promise.all(Array.from({ length: 8 }, () => runtime.call("/")));
      expect(others.map(({ body }) => body)).toEqual(Array.from({ length: 8 }, () => "fine"));
      expect(await stuck).toMatchObject({
        status: 408,
        body: "Timeout while processing the function",
      });
      expect(Date.now() - began).toBeGreaterThan(3900);
      await expect.poll(async () => (await runtime.call("/pid")).body).not.toBe(before.body);
      await expect.poll(() => alive(Number(before.body))).toBe(false);
      await expect.poll(() => runtime.output).toMatch(/handler\.py", line \d+ in main/);
    },
  );

  test("that is the first, and comes when its process gets no processor, waits for it", async () => {
    await using slow = await PythonRuntime.start(
      `import os\nprint("process", os.getpid())\ndef main(event, context): return "fine"`,
      { FUNC_TIMEOUT: "20" },
    );
    await expect.poll(() => slow.output).toMatch(/process \d+/);
    const pid = Number(/process (\d+)/.exec(slow.output)?.[1]);
    process.kill(pid, "SIGSTOP");
    const answer = slow.call();
    // Whoever looks for calls that block all others does so each second.
    await pause(2500);
    process.kill(pid, "SIGCONT");
    expect(await answer).toMatchObject({ status: 200, body: "fine" });
    expect(slow.output).not.toContain("replacing the process");
  });

  test("that takes long does not hold up others, up to the limit of threads", async () => {
    await using runtime = await PythonRuntime.start(source);
    const began = Date.now();
    let awake = 0;
    const sleepers = Array.from({ length: 20 }, async () => {
      const { body } = await runtime.call("/sleep?s=2");
      awake++;
      return body;
    });
    await pause(50);
    expect((await runtime.call("/")).body).toBe("fine");
    expect(awake).toBe(0);
    for (const body of await Promise.all(sleepers)) expect(body).toBe("slept");
    expect(Date.now() - began).toBeLessThan(15_000);
  });

  test("beyond the limit of threads and the queue is refused with retry-after", async () => {
    await using runtime = await PythonRuntime.start(source, {
      SERVER_NUMTHREADS: "2",
      SERVER_QUEUE_LENGTH: "1",
    });
    const began = Date.now();
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => runtime.call("/sleep?s=1.5")),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(answers.find(({ status }) => status === 503)?.headers["retry-after"]).toBe("1");
    expect(Date.now() - began).toBeGreaterThan(2900);
  });

  test.each(["/die", "/die-with-child"])(
    "that ends its process (%s) fails only what it has begun",
    async (path) => {
      await using runtime = await PythonRuntime.start(source);
      const sleeping = runtime.call("/sleep?s=60").catch(() => undefined);
      await expect.poll(() => runtime.output).toContain("asleep");
      expect((await runtime.call(path)).status).toBe(500);
      expect((await sleeping)?.status).toBe(500);
      expect((await runtime.call("/")).body).toBe("fine");
      await expect.poll(() => runtime.output).toContain("exit code 7");
    },
  );

  test("sees its module's globals from every call", async () => {
    await using runtime = await PythonRuntime.start(source);
    const counts = await Promise.all(Array.from({ length: 30 }, () => runtime.call("/count")));
    expect(counts.map(({ body }) => Number(body)).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 30 }, (_, index) => index + 1),
    );
  });

  test("that streams stops when its client has gone", async () => {
    await using runtime = await PythonRuntime.start(source);
    const socket = runtime.connect();
    socket.write("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
    await new Promise((resolve) => socket.once("data", resolve));
    socket.destroy();
    await expect.poll(() => runtime.output).toContain("generator closed");
    expect((await runtime.call("/")).body).toBe("fine");
  });

  test("whose answer nobody reads is broken off, and its process serves on", async () => {
    await using runtime = await PythonRuntime.start(
      `
import os
def main(event, context):
    return "x" * 50_000_000 if event["extensions"]["request"].path == "/large" else str(os.getpid())
`,
      { FUNC_TIMEOUT: "1" },
    );
    const { body: process } = await runtime.call("/");
    const socket = runtime.connect().on("error", () => undefined);
    socket.write("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => runtime.output).toMatch(/\(GET \/large\): .*FUNC_TIMEOUT/);
    expect(runtime.output).toContain("did not read the response");
    // The thread is free again, and nobody takes the process's place.
    for (let call = 0; call < 5; call++) expect((await runtime.call("/")).body).toBe(process);
    expect((await runtime.call("/metrics")).body).toContain(
      "\nfunction_workers_replaced_total 0\n",
    );
    socket.destroy();
  });

  test("that streams waits for a client that reads slowly, and others do not wait", async () => {
    await using runtime = await PythonRuntime.start(source);
    const socket = runtime.connect().pause();
    socket.write("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
    await pause(300);
    expect((await runtime.call("/")).body).toBe("fine");
    const resident = /process_resident_memory_bytes (\d+)/.exec(
      (await runtime.call("/metrics")).body,
    )?.[1];
    expect(Number(resident)).toBeLessThan(64 * 1024 * 1024);
    socket.destroy();
  });
});

describe.skipIf(missingPython)("an asynchronous handler", () => {
  test("past its time is cancelled and answered 408", async () => {
    await using runtime = await PythonRuntime.start(
      `
import asyncio
async def main(event, context):
    try:
        if event["extensions"]["request"].path == "/slow":
            await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled")
        raise
    return "fine"
`,
      { FUNC_TIMEOUT: "2" },
    );
    const slow = runtime.call("/slow");
    expect((await runtime.call("/")).body).toBe("fine");
    expect((await slow).status).toBe(408);
    await expect.poll(() => runtime.output).toContain("cancelled");
  });

  test("that forks holds no client's connection open", async () => {
    await using runtime = await PythonRuntime.start(`
import os, time
async def main(event, context):
    parent = os.getpid()
    if event["extensions"]["request"].path == "/fork" and os.fork() == 0:
        while os.getppid() == parent: time.sleep(0.1)
        os._exit(0)
    return "fine"
`);
    // Until the connection is closed.
    expect(await runtime.raw("GET /fork HTTP/1.0\r\n\r\n")).toMatch(/fine$/);
    expect((await runtime.call("/")).body).toBe("fine");
  });

  test("that blocks its loop is replaced", async () => {
    await using runtime = await PythonRuntime.start(
      `
import time
async def main(event, context):
    if event["extensions"]["request"].path == "/block":
        print("blocking")
        time.sleep(60)
    return "fine"
`,
      { FUNC_TIMEOUT: "2" },
    );
    const blocked = runtime.call("/block").catch((error: unknown) => error);
    await expect.poll(() => runtime.output).toContain("blocking");
    expect((await runtime.call("/")).body).toBe("fine");
    await blocked;
    await expect
      .poll(() => runtime.output)
      .toMatch(/event loop has been blocked.*handler\.py", line \d+ in main/s);
  });
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
