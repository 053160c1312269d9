/** Lambda handlers run in the main thread of each worker, one event at a time (contract 8.4). */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

/** Reports where it runs; with `?wait`, when a file says so. */
const handler = `
import asyncio, json, os, threading, time
seen = 0
running = 0
here = os.path.dirname(__file__)
def lambda_handler(event, context):
    global seen, running
    seen += 1
    running += 1
    most = running
    name = event.get("rawQueryString", "")
    if name:
        open(os.path.join(here, f"{name}-{time.monotonic()}.begun"), "w").close()
        while not os.path.exists(os.path.join(here, name)):
            time.sleep(0.005)
            most = max(most, running)
    running -= 1
    asyncio.get_event_loop()
    main = threading.current_thread() is threading.main_thread()
    return {"statusCode": 200, "body": json.dumps({"main": main, "most": most, "pid": os.getpid(), "seen": seen})}
`;

interface Report {
  main: boolean;
  most: number;
  pid: number;
  seen: number;
}

describe.skipIf(missingPython)("a Lambda handler", () => {
  test("runs in the main thread, with one event at a time, also next to calls that wait", async () => {
    await using runtime = await PythonRuntime.start(handler);
    for (let seen = 1; seen <= 20; seen++)
      expect(await runtime.json()).toMatchObject({ main: true, most: 1, seen });
    const quick = Array.from({ length: 20 }, () => runtime.json() as Promise<Report>);
    for (const report of await Promise.all(quick))
      expect(report).toMatchObject({ main: true, most: 1 });
  });

  test("has more workers for calls that take long", async () => {
    await using runtime = await PythonRuntime.start(handler);
    const { pid } = (await runtime.json()) as Report;
    const waiting = Array.from({ length: 4 }, () => runtime.json("/?go") as Promise<Report>);
    await expect
      .poll(() => runtime.files().filter((name) => name.endsWith(".begun")))
      .toHaveLength(4);
    // Those that wait keep others from none of the requests.
    expect(await runtime.json()).toMatchObject({ main: true, most: 1 });
    runtime.write("go", "");
    const reports = await Promise.all(waiting);
    for (const report of reports) expect(report).toMatchObject({ main: true, most: 1 });
    expect(new Set(reports.map((report) => report.pid)).size).toBe(4);
    expect(reports.map((report) => report.pid)).toContain(pid);
  });

  test("has as many workers as calls that wait for something else", async () => {
    await using runtime = await PythonRuntime.start(handler);
    const waiting = Array.from({ length: 12 }, () => runtime.json("/?go") as Promise<Report>);
    await expect
      .poll(() => runtime.files().filter((name) => name.endsWith(".begun")), { timeout: 30_000 })
      .toHaveLength(12);
    runtime.write("go", "");
    const reports = await Promise.all(waiting);
    expect(new Set(reports.map((report) => report.pid)).size).toBe(12);
  });

  test("has no more workers than memory holds", async () => {
    const megabyte = 1024 * 1024;
    await using runtime = await PythonRuntime.start(
      `
import os, time
kept = bytearray(${20 * megabyte})
def lambda_handler(event, context):
    time.sleep(0.05)
    return {"statusCode": 200, "body": str(os.getpid())}
`,
      { FUNC_MEMORY_LIMIT: String(160 * megabyte) },
    );
    const pids = new Set<string>();
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => runtime.call()));
      for (const { status, body } of answers) {
        expect(status).toBe(200);
        pids.add(body);
      }
    }
    expect(pids.size).toBeGreaterThan(1);
    expect(pids.size).toBeLessThan(7);
  });

  test("gets each event once, and none waits behind one that takes long", async () => {
    await using runtime = await PythonRuntime.start(`
import os, time
here = os.path.dirname(__file__)
def lambda_handler(event, context):
    with open(os.path.join(here, "calls"), "a") as file: file.write(event["rawPath"] + "\\n")
    while event["rawPath"].startswith("/wait") and not os.path.exists(os.path.join(here, "go")): time.sleep(0.005)
    return {"statusCode": 200, "body": "x" * (3_000_000 if event["rawPath"] == "/large" else 1)}
`);
    const expected: string[] = [];
    const call = (path: string) => {
      expected.push(path);
      return runtime.call(path);
    };
    for (let count = 0; count < 50; count++) await call(`/first-${count}`);
    const client = runtime.connect();
    client.pause();
    client.write("GET /large HTTP/1.1\r\nhost: a\r\n\r\n");
    expected.push("/large");
    const long: Promise<unknown>[] = [];
    for (let round = 0; round < 5; round++) {
      const quick = Array.from({ length: 20 }, (_, count) => call(`/quick-${round}-${count}`));
      long.push(call(`/wait-${round}`));
      quick.push(...Array.from({ length: 20 }, (_, count) => call(`/more-${round}-${count}`)));
      for (const { status } of await Promise.all(quick)) expect(status).toBe(200);
    }
    runtime.write("go", "");
    await Promise.all(long);
    client.destroy();
    const calls = readFileSync(runtime.file("calls"), "utf8").trim().split("\n");
    expect(calls.toSorted()).toEqual(expected.toSorted());
  });

  test("has all calls in one process with SERVER_NUMTHREADS", async () => {
    await using runtime = await PythonRuntime.start(
      handler.replace("    asyncio.get_event_loop()\n", ""),
      { SERVER_NUMTHREADS: "50" },
    );
    const waiting = Array.from({ length: 4 }, () => runtime.json("/?go") as Promise<Report>);
    await expect
      .poll(() => runtime.files().filter((name) => name.endsWith(".begun")))
      .toHaveLength(4);
    runtime.write("go", "");
    const reports = await Promise.all(waiting);
    expect(new Set(reports.map((report) => report.pid)).size).toBe(1);
    expect(Math.max(...reports.map((report) => report.most))).toBe(4);
  });

  test("keeps its worker when a large response is read, and when it is not", async () => {
    await using runtime = await PythonRuntime.start(`
import os
def lambda_handler(event, context):
    size = 8_000_000 if event["rawPath"] == "/large" else 0
    return {"statusCode": 200, "body": str(os.getpid()) + "x" * size}
`);
    const pid = (await runtime.call()).body;
    expect((await runtime.call("/large")).body).toHaveLength(8_000_000 + pid.length);
    const client = runtime.connect();
    client.write("GET /large HTTP/1.1\r\nhost: a\r\n\r\n");
    await once(client, "readable");
    client.destroy();
    expect((await runtime.call()).body).toBe(pid);
  });

  test("is given back its worker when a client does not read in time", async () => {
    await using runtime = await PythonRuntime.start(
      `
import os
def lambda_handler(event, context):
    size = 20_000_000 if event["rawPath"] == "/large" else 0
    return {"statusCode": 200, "body": str(os.getpid()) + "x" * size}
`,
      { FUNC_TIMEOUT: "5" },
    );
    const pid = (await runtime.call()).body;
    const client = runtime.connect();
    client.pause();
    client.write("GET /large HTTP/1.1\r\nhost: a\r\n\r\n");
    await expect.poll(() => runtime.output).toContain("did not read the response");
    expect((await runtime.call()).body).toBe(pid);
    client.destroy();
  });

  test("whose worker dies has another", async () => {
    await using runtime = await PythonRuntime.start(`
import os
def lambda_handler(event, context):
    if event["rawPath"] == "/die": os._exit(3)
    return {"statusCode": 200, "body": str(os.getpid())}
`);
    const pid = (await runtime.call()).body;
    expect((await runtime.call("/die")).status).toBe(500);
    expect((await runtime.call()).body).not.toBe(pid);
  });
});
