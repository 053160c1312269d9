import { type ServerResponse } from "node:http";
import { functions } from "@spry/function";
import { type Logger, silentLogger } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, bodyOf, type PodHandler, startBench } from "./testing/bench.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

/** Another gateway than the default one, for this test. */
async function restart(options: Parameters<typeof startBench>[0]): Promise<void> {
  await bench.close();
  bench = await startBench(options);
}

async function running(...handlers: PodHandler[]) {
  const pods = await Promise.all(handlers.map((handler) => bench.pod(handler)));
  await bench.service();
  await bench.endpoints(pods);
  return pods;
}

describe("a request to a Function", () => {
  test("reaches a ready Pod as it was sent", async () => {
    const [pod] = await running(async (request, response) => {
      const body = await bodyOf(request);
      response.setHeader("x-pod", "one").setHeader("set-cookie", ["a=1", "b=2"]);
      response.end(`${request.method} ${request.url} ${body.toString()}`);
    });
    const answer = await bench.call({
      method: "PUT",
      path: "/a%20b?x=1&x=2",
      headers: { "X-Mine": "v", connection: "x-private", "x-private": "1", te: "trailers" },
      body: "payload",
    });
    expect(answer).toMatchObject({ status: 200, body: "PUT /a%20b?x=1&x=2 payload" });
    expect(answer.headers).toMatchObject({ "x-pod": "one", "set-cookie": ["a=1", "b=2"] });
    const headers = pod?.seen[0]?.headers ?? {};
    expect(headers).toMatchObject({
      host: "hello.default.localhost",
      "x-mine": "v",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": "hello.default.localhost",
      forwarded: 'for=127.0.0.1;host="hello.default.localhost";proto=http',
    });
    expect(headers).not.toHaveProperty("x-private");
    expect(headers).not.toHaveProperty("te");
  });

  test("does not believe what its client says about where it comes from", async () => {
    const [pod] = await running((_, response) => response.end());
    await bench.call({ headers: { "x-forwarded-for": "10.0.0.1", forwarded: "for=10.0.0.1" } });
    expect(pod?.seen[0]?.headers["x-forwarded-for"]).toBe("127.0.0.1");
    expect(pod?.seen[0]?.headers.forwarded).not.toContain("10.0.0.1");
  });

  test("has one id: the client's or a new one, for the Pod, the response and errors", async () => {
    const [pod] = await running((request, response) => {
      if (request.url === "/break") return void response.destroy();
      response.end();
    });
    const given = await bench.call({ headers: { "x-request-id": "mine-1" } });
    expect(given.headers["x-request-id"]).toBe("mine-1");
    expect(pod?.seen[0]?.headers["x-request-id"]).toBe("mine-1");
    const bad = await bench.call({ headers: { "x-request-id": "two words" } });
    expect(bad.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(pod?.seen[1]?.headers["x-request-id"]).toBe(bad.headers["x-request-id"]);
    const broken = await bench.call({ method: "POST", path: "/break" });
    expect(broken.status).toBe(502);
    expect(broken.headers["x-request-id"]).toBe(pod?.seen[2]?.headers["x-request-id"]);
  });

  test.each([
    "HELLO.default.localhost:1234",
    "hello.default.svc.cluster.local",
    "hello.default.svc",
  ])("may use the host %s", async (host) => {
    await running((_, response) => response.end("here"));
    expect((await bench.call({ host })).body).toBe("here");
  });

  test.each([
    ["HEAD", 200, ""],
    ["GET", 204, ""],
    ["GET", 304, ""],
    ["OPTIONS", 200, "x"],
    ["DELETE", 200, "x"],
  ])("%s with the answer %d keeps to the rules of HTTP", async (method, status, body) => {
    await running((_, response) => {
      response.writeHead(status, status === 200 ? { "content-length": 1 } : {});
      response.end(body);
    });
    const answer = await bench.call({ method });
    expect(answer).toMatchObject({ status, body });
    if (method === "HEAD") expect(answer.headers["content-length"]).toBe("1");
  });

  test("is spread over the ready Pods, the least loaded first", async () => {
    const waiting: ServerResponse[] = [];
    // None is done before all are there.
    const hold: PodHandler = (_, response) => {
      if (waiting.push(response) === 9) for (const each of waiting) each.end();
    };
    const pods = await running(hold, hold, hold);
    await Promise.all(Array.from({ length: 9 }, () => bench.call()));
    expect(pods.map(({ seen }) => seen.length)).toEqual([3, 3, 3]);
  });

  test("goes to a Pod that ends but serves when no other is left", async () => {
    const pod = await bench.pod((_, response) => response.end("last"));
    await bench.service();
    await bench.endpoints([], [pod]);
    expect((await bench.call()).body).toBe("last");
  });

  test("keeps its trailers", async () => {
    await running((_, response) => {
      response.writeHead(200, { trailer: "x-sum" });
      response.write("data");
      response.addTrailers({ "x-sum": "42" });
      response.end();
    });
    const socket = await bench.raw();
    socket.write("GET / HTTP/1.1\r\nhost: hello.default.localhost\r\nconnection: close\r\n\r\n");
    const text = (await bodyOf(socket)).toString();
    expect(text).toMatch(/0\r\nx-sum: 42\r\n\r\n$/);
  });

  test("may be written as a proxy request", async () => {
    const [pod] = await running((request, response) => response.end(request.url));
    const path = "http://hello.default.localhost:80/path?q#f";
    expect(await bench.call({ path, host: "elsewhere.example" })).toMatchObject({
      body: "/path?q",
    });
    expect(pod?.seen[0]?.headers.host).toBe("hello.default.localhost:80");
  });
});

describe("an answer of the gateway's own", () => {
  const conditions = (reason: string, status: "True" | "False" | "Unknown") => [
    { type: "ConfigurationReady" as const, status: "True" as const, reason: "ConfigMapCreated" },
    { type: "BuildReady" as const, status, reason, message: `what ${reason} means\nmore` },
  ];

  test("says what hosts look like", async () => {
    const answer = await bench.call({ host: "example.com" });
    expect(answer).toMatchObject({ status: 404, headers: { "x-spry-reason": "UnknownHost" } });
    expect(answer.body).toContain("<function>.<namespace>.localhost");
  });

  test("says that there is no such Function", async () => {
    const answer = await bench.call({ headers: { accept: "application/json" } });
    expect(answer).toMatchObject({ status: 404, headers: { "x-spry-reason": "FunctionNotFound" } });
    expect(JSON.parse(answer.body)).toEqual({
      status: 404,
      reason: "FunctionNotFound",
      message: "Function hello not found in namespace default, which has no Functions",
    });
  });

  test("gives the Function's own reason at once when its build has failed", async () => {
    await bench.fn(conditions("JobFailed", "False") as never);
    const answer = await bench.call();
    expect(answer).toMatchObject({
      status: 503,
      headers: { "x-spry-reason": "JobFailed", "retry-after": "1" },
      body: "Function default/hello is not ready: what JobFailed means\n",
    });
  });

  test("says at once that the Function was scaled to zero", async () => {
    await bench.fn(conditions("DeploymentReady", "True") as never);
    const hello = { namespace: "default", name: "hello" };
    await bench.client.patch(functions, hello, { spec: { replicas: 0 } });
    await bench.service();
    await bench.heard();
    const start = Date.now();
    const answer = await bench.call();
    expect(answer).toMatchObject({ status: 503, headers: { "x-spry-reason": "ScaledToZero" } });
    expect(answer.body).toContain("spec.replicas is 0");
    expect(Date.now() - start).toBeLessThan(900);
  });

  test("comes only after a while when the first version is on the way", async () => {
    await restart({ readyWaitMs: 400 });
    await bench.fn(conditions("JobRunning", "Unknown") as never);
    const start = Date.now();
    const answer = await bench.call();
    expect(answer).toMatchObject({ status: 503, headers: { "x-spry-reason": "JobRunning" } });
    expect(Date.now() - start).toBeGreaterThan(350);
  });

  test("is not needed when the first version gets ready in time", async () => {
    await bench.fn(conditions("JobRunning", "Unknown") as never);
    const pending = bench.call({ method: "POST", body: "early" });
    const pod = await bench.pod(async (request, response) => response.end(await bodyOf(request)));
    await bench.service();
    await bench.endpoints([pod]);
    expect(await pending).toMatchObject({ status: 200, body: "early" });
  });

  test("is 502 when the Pod breaks off before its answer", async () => {
    const [pod] = await running((request) => request.socket.destroy());
    const answer = await bench.call({ method: "POST", body: "once" });
    expect(answer).toMatchObject({ status: 502, headers: { "x-spry-reason": "UpstreamFailed" } });
    expect(pod?.seen).toHaveLength(1);
  });

  test("is retried once its Pod's process has ended, which may break two connections", async () => {
    let left = 2;
    const [pod] = await running((request, response) => {
      if (left-- > 0) request.socket.destroy();
      else response.end("restarted");
    });
    expect(await bench.call()).toMatchObject({ status: 200, body: "restarted" });
    left = 3;
    expect(await bench.call()).toMatchObject({ status: 502 });
    expect(pod?.seen).toHaveLength(6);
  });

  test("is 502 when no Pod accepts connections", async () => {
    const [pod] = await running((_, response) => response.end());
    await pod?.stop();
    const answer = await bench.call();
    expect(answer).toMatchObject({
      status: 502,
      headers: { "x-spry-reason": "UpstreamUnreachable" },
    });
  });

  test("is 502 when the Pod does not speak HTTP", async () => {
    await running((request) => request.socket.end("nonsense\r\n\r\n"));
    expect((await bench.call()).status).toBe(502);
  });

  test("is 504 when the Pod does not answer", async () => {
    await restart({ upstreamTimeoutMs: 500 });
    await running(() => {});
    const answer = await bench.call();
    expect(answer).toMatchObject({ status: 504, headers: { "x-spry-reason": "UpstreamTimeout" } });
  });

  const to = "host: hello.default.localhost\r\n";
  test.each([
    ["a header that is none", `GET / HTTP/1.1\r\n${to}bad header\r\n\r\n`, 400],
    ["headers without end", `GET / HTTP/1.1\r\n${to}x: ${"y".repeat(40_000)}\r\n\r\n`, 431],
    ["nonsense", "nonsense\r\n\r\n", 400],
    ["a request without host", "GET / HTTP/1.1\r\n\r\n", 400],
    [
      "two lengths",
      `POST / HTTP/1.1\r\n${to}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`,
      400,
    ],
    ["CONNECT", "CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n", 405],
    ["OPTIONS *", `OPTIONS * HTTP/1.1\r\n${to}connection: close\r\n\r\n`, 400],
    ["a huge body", `POST / HTTP/1.1\r\n${to}content-length: ${2 ** 31}\r\n\r\n`, 413],
  ])("to %s is an error", async (_, text, status) => {
    await running((_, response) => response.end());
    const socket = await bench.raw();
    socket.write(text);
    const answer = (await bodyOf(socket)).toString();
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    socket.destroy();
  });
});

test("Services that are no Function's are not reachable", async () => {
  const pod = await bench.pod((_, response) => response.end("internal"));
  await bench.service("hello", { app: "database" });
  await bench.endpoints([pod]);
  expect((await bench.call()).status).toBe(404);
});

describe("while the API server is away", () => {
  test("requests go on, and what changed meanwhile counts afterwards", async () => {
    await running((_, response) => response.end("before"));
    bench.network.cut();
    expect((await bench.call()).body).toBe("before");
    await bench.endpoints([await bench.pod((_, response) => response.end("after"))]);
    expect((await bench.call()).body).toBe("before");
    bench.network.restore();
    await expect.poll(async () => (await bench.call()).body).toBe("after");
  });
});

test("requests beyond what may wait are turned away at once", async () => {
  await restart({ maxWaiting: 2 });
  await bench.fn([{ type: "BuildReady", status: "Unknown", reason: "JobRunning", message: "" }]);
  const calls = Array.from({ length: 3 }, () => bench.call());
  expect((await Promise.race(calls)).headers["x-spry-reason"]).toBe("QueueFull");
  await running((_, response) => response.end("served"));
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(2);
});

test("behind a proxy of ours, what that says about the client is passed on", async () => {
  const behind = await startBench({ trustForwarded: true });
  const pod = await behind.pod((_, response) => response.end());
  await behind.service();
  await behind.endpoints([pod]);
  await behind.call({
    headers: {
      "x-forwarded-for": "10.0.0.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "shop.example",
      forwarded: "for=10.0.0.1;proto=https",
    },
  });
  expect(pod.seen[0]?.headers).toMatchObject({
    "x-forwarded-for": "10.0.0.1, 127.0.0.1",
    "x-forwarded-proto": "https",
    "x-forwarded-host": "shop.example",
    forwarded: 'for=10.0.0.1;proto=https, for=127.0.0.1;host="hello.default.localhost";proto=http',
  });
  await behind.close();
});

test("each request may leave a line in the log", async () => {
  const lines: object[] = [];
  const log: Logger = { ...silentLogger, info: (fields) => lines.push(fields), child: () => log };
  const logging = await startBench({ accessLog: true, log });
  await logging.call({ path: "/a?b", host: "nobody" });
  await logging.close();
  const ms = expect.any(Number) as number;
  const requestId = expect.stringMatching(/^[0-9a-f-]{36}$/) as string;
  expect(lines).toEqual([
    // A query may have a token in it.
    { client: "127.0.0.1", method: "GET", host: "nobody", path: "/a", status: 404, ms, requestId },
  ]);
});

test("metrics count requests by Function and status", async () => {
  await running((_, response) => response.end());
  await bench.call();
  await bench.call({ host: "nobody" });
  const admin = await bench.kit.listenAdmin({ host: "127.0.0.1", port: 0 });
  const text = await (await fetch(`http://127.0.0.1:${admin.port}/metrics`)).text();
  expect(text).toContain('_count{namespace="default",function="hello",code="200"} 1');
  expect(text).toContain('_count{namespace="",function="",code="404"} 1');
  expect(text).toContain("spry_gateway_active_requests 0");
  await admin.close();
});
