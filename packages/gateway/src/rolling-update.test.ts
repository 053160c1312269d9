import * as http from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "@spry/kube";
import { type Bench, bodyOf, startBench, type TestPod } from "./testing/bench.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

/** No moment is over, however long this process stands still; pauses end. */
const withoutTime: Clock = { ...systemClock, now: () => 1, elapsed: () => 1 };

const echo = async (request: http.IncomingMessage, response: http.ServerResponse) =>
  response.end(`echo ${(await bodyOf(request)).toString()}`);
/** Answers each connection's first request and breaks the connection at its second. */
const breakingWhenReused = () => {
  const used = new WeakSet();
  return (request: http.IncomingMessage, response: http.ServerResponse) => {
    if (used.has(request.socket)) return request.socket.resetAndDestroy();
    used.add(request.socket);
    return echo(request, response);
  };
};

describe("a request whose connection was refused", () => {
  test.each([
    ["a small body", "small", {}],
    ["a body in chunks", "chunked", { "transfer-encoding": "chunked" }],
    ["a large body", "x".repeat(300_000), {}],
  ])("is sent to another Pod, with %s", async (_, body, headers) => {
    const [gone, there] = [await bench.pod(echo), await bench.pod(echo)];
    await bench.service();
    await bench.endpoints([gone, there]);
    await gone.stop();
    const calls = Array.from({ length: 4 }, () => bench.call({ method: "POST", body, headers }));
    for (const answer of await Promise.all(calls)) {
      expect(answer).toMatchObject({ status: 200, body: `echo ${body}` });
    }
  });

  test("waits a moment for the Pod that takes its place", async () => {
    await bench.close();
    bench = await startBench({ clock: withoutTime });
    const gone = await bench.pod(echo);
    await bench.service();
    await bench.endpoints([gone]);
    await gone.stop();
    const pending = bench.call({ method: "POST", body: "patient" });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await bench.endpoints([await bench.pod(echo)]);
    expect(await pending).toMatchObject({ status: 200, body: "echo patient" });
  });
});

describe("a request whose kept-alive connection broke", () => {
  test("is sent again when it is idempotent", async () => {
    const pod = await bench.pod(breakingWhenReused());
    await bench.service();
    await bench.endpoints([pod]);
    await bench.call();
    expect((await bench.call({ method: "PUT", body: "again" })).body).toBe("echo again");
    expect(pod.seen).toHaveLength(3);
  });

  test("is not sent again when it may have done something", async () => {
    const pod = await bench.pod(breakingWhenReused());
    await bench.service();
    await bench.endpoints([pod]);
    await bench.call();
    expect((await bench.call({ method: "POST", body: "once" })).status).toBe(502);
    expect(pod.seen).toHaveLength(2);
  });

  test("is sent to another Pod when its own was being removed", async () => {
    await bench.close();
    bench = await startBench({ clock: withoutTime });
    const after = await bench.pod(echo);
    const before: TestPod = await bench.pod(async (request) => {
      // The gateway learns of the removal while the request is on its way.
      await bench.endpoints([after]);
      request.socket.resetAndDestroy();
    });
    await bench.service();
    await bench.endpoints([before]);
    const answer = await bench.call({ method: "POST", body: "moved" });
    expect(answer).toMatchObject({ status: 200, body: "echo moved" });
  });

  test("is sent a third time when both broke within the end of one process, and never a fourth", async () => {
    const broken = (request: http.IncomingMessage) => request.socket.resetAndDestroy();
    const used = new WeakSet();
    const pod = await bench.pod((request, response) => {
      if (pod.seen.length > 1 || used.has(request.socket)) return broken(request);
      used.add(request.socket);
      return response.end();
    });
    await bench.service();
    await bench.endpoints([pod]);
    await bench.call();
    expect((await bench.call()).status).toBe(502);
    expect(pod.seen).toHaveLength(4);
  });
});

/** Ends like a Function's runtime does: says so on each answer, then closes idle connections. */
async function endGently(pod: TestPod): Promise<void> {
  await new Promise<void>((resolve) => {
    pod.server.close(() => resolve());
    pod.server.closeIdleConnections();
  });
}

test("20 updates under load lose no request", async () => {
  await bench.service();
  let current = await bench.pod(echo);
  await bench.endpoints([current]);
  const agent = new http.Agent({ keepAlive: true });
  const failures: unknown[] = [];
  let sent = 0;
  const updating = new AbortController();
  const load = async (n: number) => {
    while (!updating.signal.aborted) {
      const body = `body ${sent++}`;
      const method = n % 2 === 0 ? "POST" : "PUT";
      const answer = await bench
        .call({ method, body, ...(n > 3 ? { agent } : {}) })
        .catch((error: unknown) => ({ status: 0, body: String(error) }));
      if (answer.body !== `echo ${body}`) failures.push(answer);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const clients = Array.from({ length: 8 }, (_, n) => load(n));
  /** Changes what is ready, and goes on when it has had its requests. */
  const change = async (ready: TestPod[], ending?: TestPod[]) => {
    const before = sent;
    await bench.endpoints(ready, ending);
    await expect.poll(() => sent, { interval: 5 }).toBeGreaterThan(before + 4);
  };
  for (let i = 0; i < 20; i++) {
    const next = await bench.pod(echo);
    await change([next, current]);
    await change([next], [current]);
    await endGently(current);
    await change([next]);
    current = next;
  }
  updating.abort();
  await Promise.all(clients);
  expect(failures).toEqual([]);
  expect(sent).toBeGreaterThan(200);
  agent.destroy();
});
