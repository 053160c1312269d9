import * as http from "node:http";
import { once } from "node:events";
import { type ServerResponse } from "node:http";
import { type EndpointSlice, resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, bodyOf, callGateway, startBench } from "./testing/bench.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench({ withKnative: true });
});
afterEach(() => bench.close());

/** Another gateway than the default one, for this test. */
async function restart(options: Parameters<typeof startBench>[0]): Promise<void> {
  await bench.close();
  bench = await startBench({ withKnative: true, ...options });
}

/** A Route and its only Revision, without Pods; both have this name. */
async function atZero(name = "hello", spec = {}): Promise<void> {
  await bench.knative.revision(name, spec);
  await bench.knative.route(name, [{ revisionName: name, percent: 100 }]);
  await bench.heard();
}

/** A client that may leave. */
function open(path = "/", headers: http.OutgoingHttpHeaders = {}): http.ClientRequest {
  const request = http.request({
    host: "127.0.0.1",
    port: bench.port,
    path,
    agent: false,
    headers: { host: "hello.default.localhost", ...headers },
  });
  return request.on("error", () => {});
}

/** How many requests wait now, by the gateway's own metrics. */
async function waiting(): Promise<number> {
  const admin = await bench.kit.listenAdmin({ host: "127.0.0.1", port: 0 });
  const text = await (await fetch(`http://127.0.0.1:${admin.port}/metrics`)).text();
  await admin.close();
  return Number(/^spry_gateway_waiting_requests (\d+)$/m.exec(text)?.[1]);
}

describe("requests for a Revision at zero", () => {
  test("wait in the order of their arrival, and a burst of 200 loses none", async () => {
    await atZero("hello", { containerConcurrency: 1 });
    const calls = [];
    for (let i = 0; i < 200; i++) {
      calls.push(bench.call({ path: `/${i}` }));
      await bench.heard();
    }
    expect(await waiting()).toBe(200);
    const pod = await bench.pod((request, response) => response.end(request.url));
    await bench.revisionPods("hello", [pod]);
    const responses = await Promise.all(calls);
    expect(responses.map(({ status, body }) => `${status} ${body}`)).toEqual(
      calls.map((_, i) => `200 /${i}`),
    );
    expect(pod.seen.map(({ url }) => url)).toEqual(calls.map((_, i) => `/${i}`));
  });

  test("arrive with their bodies", async () => {
    await atZero();
    const large = "x".repeat(300_000);
    const calls = [
      bench.call({ method: "POST", body: "small" }),
      bench.call({ method: "POST", body: large }),
      bench.call({ method: "POST", body: "chunks", headers: { "transfer-encoding": "chunked" } }),
    ];
    await expect.poll(waiting).toBe(3);
    const pod = await bench.pod(async (request, response) => response.end(await bodyOf(request)));
    await bench.revisionPods("hello", [pod]);
    expect((await Promise.all(calls)).map(({ body }) => body)).toEqual(["small", large, "chunks"]);
  });

  test("use the next Pod as soon as it is ready", async () => {
    await atZero("hello", { containerConcurrency: 10 });
    const held: ServerResponse[] = [];
    const hold = (_: unknown, response: ServerResponse) => void held.push(response);
    const pods = [await bench.pod(hold), await bench.pod(hold)];
    const calls = Array.from({ length: 20 }, () => bench.call());
    await expect.poll(waiting).toBe(20);
    await bench.revisionPods("hello", pods.slice(0, 1));
    await expect.poll(() => held.length).toBe(10);
    await bench.revisionPods("hello", pods);
    await expect.poll(() => held.length).toBe(20);
    expect(pods.map(({ seen }) => seen.length)).toEqual([10, 10]);
    for (const response of held) response.end();
    expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  test("reach a Pod whose address is known before its socket is open", async () => {
    await atZero();
    const pod = await bench.pod((_, response) => response.end());
    await pod.stop();
    const pending = bench.call({ method: "POST", body: "early" });
    await bench.revisionPods("hello", [pod]);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const late = http.createServer((_, response) => response.end("awake"));
    late.listen(pod.port, pod.address);
    expect(await pending).toMatchObject({ status: 200, body: "awake" });
    late.close();
  });

  test("wait when its slice has become empty", async () => {
    await atZero();
    const pod = await bench.pod((_, response) => response.end("first"));
    await bench.revisionPods("hello", [pod]);
    expect((await bench.call()).body).toBe("first");
    const { items } = await bench.client.list(resources.endpointSlices);
    // As endpoint controllers leave it: without Pods there are no ports.
    const empty = { ...items[0], endpoints: null, ports: null } as unknown as EndpointSlice;
    await bench.client.update(resources.endpointSlices, empty);
    await bench.heard();
    const pending = bench.call();
    await expect.poll(waiting).toBe(1);
    await bench.revisionPods("hello", [pod]);
    expect(await pending).toMatchObject({
      body: "first",
      headers: { "server-timing": expect.stringMatching(/^coldstart/) as string },
    });
  });

  test("do not go to a Pod that is terminating, and those that it has are finished", async () => {
    await atZero();
    const held: ServerResponse[] = [];
    const ending = await bench.pod((_, response) => void held.push(response));
    await bench.revisionPods("hello", [ending]);
    const before = bench.call();
    await expect.poll(() => held.length).toBe(1);
    await bench.revisionPods("hello", [], [ending]);
    const after = bench.call();
    await expect.poll(waiting).toBe(1);
    held[0]?.end("finished");
    expect((await before).body).toBe("finished");
    await bench.revisionPods("hello", [await bench.pod((_, response) => response.end("next"))]);
    expect((await after).body).toBe("next");
  });

  test("get 503 when their time is over", async () => {
    await atZero("hello", { timeoutSeconds: 1 });
    expect(await bench.call()).toMatchObject({
      status: 503,
      headers: { "x-spry-reason": "NoReadyEndpoint", "retry-after": "1" },
      body: "Revision default/hello has no Pod that is ready\n",
    });
  });

  test("get the reason when it has failed", async () => {
    await restart({ readyWaitMs: 200 });
    const message = "Unable to fetch image: not found\nmore";
    const failed = { type: "Ready", status: "False", reason: "ContainerMissing", message } as const;
    await bench.knative.revision("hello", {}, [failed]);
    await bench.knative.route("hello", [{ revisionName: "hello", percent: 100 }]);
    await bench.heard();
    expect(await bench.call()).toMatchObject({
      status: 503,
      headers: { "x-spry-reason": "ContainerMissing", "retry-after": "1" },
      body: "Revision default/hello is not ready: Unable to fetch image: not found\n",
    });
  });

  test("show how long they waited", async () => {
    await atZero();
    const pending = bench.call();
    await expect.poll(waiting).toBe(1);
    await bench.revisionPods("hello", [await bench.pod((_, response) => response.end())]);
    const timing = (await pending).headers["server-timing"];
    expect(timing).toMatch(/^coldstart;dur=\d+(\.\d+)?$/);
    expect((await bench.call()).headers).not.toHaveProperty("server-timing");
    const admin = await bench.kit.listenAdmin({ host: "127.0.0.1", port: 0 });
    const text = await (await fetch(`http://127.0.0.1:${admin.port}/metrics`)).text();
    expect(text).toContain(
      'spry_gateway_cold_start_seconds_count{namespace="default",function="hello",revision="hello"} 1',
    );
    await admin.close();
  });
});

describe("a waiting line", () => {
  test("that is full refuses at once, and affects no other destination", async () => {
    await restart({ maxWaiting: 2 });
    await atZero("hello");
    await atZero("other");
    const calls = [bench.call(), bench.call()];
    await expect.poll(waiting).toBe(2);
    expect(await bench.call()).toMatchObject({
      status: 503,
      headers: { "x-spry-reason": "QueueFull", "retry-after": "1" },
      body: "too many requests are waiting for Revision default/hello (limit: 2 requests); retry later\n",
    });
    const other = bench.call({ host: "other.default.localhost" });
    await expect.poll(waiting).toBe(3);
    const pod = await bench.pod((_, response) => response.end());
    await bench.revisionPods("other", [pod]);
    expect((await other).status).toBe(200);
    await bench.revisionPods("hello", [pod]);
    for (const call of calls) expect((await call).status).toBe(200);
  });

  test("loses a client that leaves, and its place is free", async () => {
    await restart({ maxWaiting: 1 });
    await atZero();
    const leaving = open("/left").end();
    await expect.poll(waiting).toBe(1);
    leaving.destroy();
    await expect.poll(waiting).toBe(0);
    const pending = bench.call({ path: "/stays" });
    await expect.poll(waiting).toBe(1);
    const pod = await bench.pod((_, response) => response.end());
    await bench.revisionPods("hello", [pod]);
    expect((await pending).status).toBe(200);
    expect(pod.seen.map(({ url }) => url)).toEqual(["/stays"]);
  });

  test("is left by a request whose body is complete when a Pod has become ready meanwhile", async () => {
    await restart({ maxWaiting: 1, maxConcurrency: 1 });
    await atZero();
    const slow = open("/slow", { "content-length": 4 });
    slow.method = "POST";
    slow.write("sl");
    await bench.heard();
    expect((await bench.call()).headers["x-spry-reason"]).toBe("QueueFull");
    const held: ServerResponse[] = [];
    const pod = await bench.pod((_, response) => void held.push(response));
    await bench.revisionPods("hello", [pod]);
    slow.end("ow");
    await expect.poll(() => held.length).toBe(1);
    const next = bench.call();
    await expect.poll(waiting).toBe(1);
    held[0]?.end();
    await expect.poll(() => held.length).toBe(2);
    held[1]?.end();
    expect((await next).status).toBe(200);
  });

  test("is bounded in memory, however large heads and bodies are", async () => {
    await restart({ maxWaitingBytes: 1024 * 1024 });
    await atZero();
    const head = { "x-large": "x".repeat(30_000) };
    const responses = Array.from({ length: 100 }, async () => {
      const request = open("/", head).end();
      const [response] = (await once(request, "response")) as [http.IncomingMessage];
      response.resume();
      return response.headers["x-spry-reason"];
    });
    const refused = await Promise.race(responses);
    expect(refused).toBe("QueueFull");
    await expect.poll(waiting).toBe(34);
    const upload = open("/", { "content-length": 1024 ** 3 });
    upload.flushHeaders();
    const [response] = (await once(upload, "response")) as [http.IncomingMessage];
    expect(response.statusCode).toBe(503);
    upload.destroy();
    await bench.revisionPods("hello", [await bench.pod((_, response) => response.end())]);
    await Promise.all(responses);
  });
});

describe("a Pod's limit of concurrent requests", () => {
  /** The most that a Pod has had at a time. */
  const busyPod = async () => {
    let now = 0;
    const most = { value: 0 };
    const pod = await bench.pod((_, response) => {
      most.value = Math.max(most.value, ++now);
      setTimeout(() => {
        now--;
        response.end();
      }, 10);
    });
    return { pod, most };
  };

  test("of a Revision is kept exactly, and further requests wait", async () => {
    await atZero("hello", { containerConcurrency: 1 });
    const [a, b] = [await busyPod(), await busyPod()];
    await bench.revisionPods("hello", [a.pod, b.pod]);
    const agent = new http.Agent({ keepAlive: true });
    const calls = Array.from({ length: 40 }, (_, i) =>
      bench.call(i % 2 === 0 ? { agent } : { method: "POST", body: "x", agent }),
    );
    for (const call of calls) expect((await call).status).toBe(200);
    expect([a.most.value, b.most.value]).toEqual([1, 1]);
    expect(Math.min(a.pod.seen.length, b.pod.seen.length)).toBeGreaterThan(10);
    agent.destroy();
  });

  test("of the gateway's own makes requests to any Function wait", async () => {
    await restart({ maxConcurrency: 1 });
    const { pod, most } = await busyPod();
    await bench.service();
    await bench.endpoints([pod]);
    const calls = Array.from({ length: 10 }, () => bench.call());
    for (const call of calls) expect((await call).status).toBe(200);
    expect(most.value).toBe(1);
  });

  test.each([
    [429, "ConcurrencyLimitExceeded", { containerConcurrency: 1 }, 1_000],
    [503, "Overloaded", {}, 1],
  ])("ends waiting with %d %s", async (status, reason, spec, maxConcurrency) => {
    await restart({ maxConcurrency, maxWaitMs: 200 });
    await atZero("hello", spec);
    const held: ServerResponse[] = [];
    const pod = await bench.pod((_, response) => void held.push(response));
    await bench.revisionPods("hello", [pod]);
    const first = bench.call();
    await expect.poll(() => held.length).toBe(1);
    expect(await bench.call()).toMatchObject({
      status,
      headers: { "x-spry-reason": reason, "retry-after": "1" },
    });
    held[0]?.end();
    expect((await first).status).toBe(200);
  });

  test("counts a tunnel for as long as it is open", async () => {
    await atZero("hello", { containerConcurrency: 1 });
    const pod = await bench.pod((_, response) => response.end("next"));
    pod.server.on("upgrade", (_, socket) => {
      socket.resume().once("end", () => socket.end());
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n",
      );
    });
    await bench.revisionPods("hello", [pod]);
    const tunnel = await bench.raw();
    tunnel.write(
      "GET / HTTP/1.1\r\nhost: hello.default.localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n",
    );
    await once(tunnel, "data");
    const pending = callGateway(bench.port, {});
    await expect.poll(waiting).toBe(1);
    tunnel.destroy();
    expect((await pending).body).toBe("next");
  });
});
