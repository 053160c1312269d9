import * as http from "node:http";
import { once } from "node:events";
import { type Socket } from "node:net";
import { type Clock, systemClock } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type Bench, bodyOf, type PodHandler, startBench, type TestPod } from "./testing/bench.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

async function running(handler: PodHandler): Promise<TestPod> {
  const pod = await bench.pod(handler);
  await bench.service();
  await bench.endpoints([pod]);
  return pod;
}

/** A request whose body the test writes itself. */
function open(options: http.RequestOptions = {}): http.ClientRequest {
  const request = http.request({
    host: "127.0.0.1",
    port: bench.port,
    method: "POST",
    agent: false,
    ...options,
    headers: { host: "hello.default.localhost", ...(options.headers as object) },
  });
  request.on("error", () => {});
  return request;
}

const responseTo = async (request: http.ClientRequest): Promise<http.IncomingMessage> =>
  ((await once(request, "response")) as [http.IncomingMessage])[0];
const chunkOf = async (stream: NodeJS.ReadableStream): Promise<string> =>
  String(((await once(stream, "data")) as [Buffer])[0]);

/** However it came to its end. */
const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.closed ? resolve() : socket.once("close", () => resolve())));

describe("a body", () => {
  test("flows both ways at once, chunk by chunk", async () => {
    await running((request, response) => {
      request.on("data", (chunk: Buffer) => response.write(`<${chunk.toString()}>`));
      request.on("end", () => response.end("."));
    });
    const request = open();
    request.write("one");
    const response = await responseTo(request);
    expect(await chunkOf(response)).toBe("<one>");
    request.write("two");
    expect(await chunkOf(response)).toBe("<two>");
    request.end();
    expect(await chunkOf(response)).toBe(".");
  });

  test.each([
    ["of known length", { "content-length": 8 * 1024 * 1024 }],
    ["in chunks", {}],
  ])("%s that is large arrives whole and comes back whole", async (_, headers) => {
    await running((request, response) => request.pipe(response));
    const sent = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdefg");
    const request = open({ headers });
    request.end(sent);
    const received = await bodyOf(await responseTo(request));
    expect(received.equals(sent)).toBe(true);
  });

  const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
  test.each<[string, (response: http.ServerResponse) => unknown]>([
    ["along with its head", (response) => response.setHeader("content-length", 256).end(bytes)],
    [
      "along with its head, in chunks",
      (response) => response.writeHead(200) && response.end(bytes),
    ],
    [
      "in pieces along with its head",
      (response) => {
        response.write(bytes.subarray(0, 9));
        response.write(bytes.subarray(9));
        response.end();
      },
    ],
    [
      "half of it along with its head",
      (response) => {
        response.setHeader("content-length", 256).write(bytes.subarray(0, 128));
        setTimeout(() => response.end(bytes.subarray(128)), 20);
      },
    ],
    [
      "after its head",
      (response) => {
        response.flushHeaders();
        setTimeout(() => response.end(bytes), 20);
      },
    ],
    [
      "along with its head and trailers",
      (response) => {
        response.writeHead(200, { trailer: "x-sum" }).write(bytes);
        response.addTrailers({ "x-sum": "256" });
        response.end();
      },
    ],
  ])("that comes %s has the bytes that it had", async (_, answer) => {
    await running((_request, response) => answer(response));
    const received = await bodyOf(await responseTo(open().end()));
    expect(received.equals(bytes)).toBe(true);
  });

  test("that is small and never comes whole is answered 408, and its Pod is not bothered", async () => {
    await bench.close();
    bench = await startBench({ bodyStallMs: 100 });
    let calls = 0;
    await running((_, response) => {
      calls++;
      response.end();
    });
    const request = open({ headers: { "content-length": 100 } });
    request.write("part");
    const response = await responseTo(request);
    expect([response.statusCode, response.headers["x-spry-reason"], calls]).toEqual([
      408,
      "RequestTimeout",
      0,
    ]);
    expect((await bodyOf(response)).toString()).toMatch(/^request body is incomplete/);
  });

  test("waits for a slow reader instead of filling the gateway", async () => {
    let written = 0;
    await running((_, response) => {
      const chunk = Buffer.alloc(64 * 1024);
      const fill = () => {
        while (written < 1 << 28) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", fill);
        }
        response.end();
      };
      fill();
    });
    const response = await responseTo(open({ method: "GET" }).end());
    await chunkOf(response);
    response.pause();
    let before = -1;
    while (written !== before) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(written).toBeLessThan(1 << 26);
    response.destroy();
  });

  test("is asked for with 100 Continue only when it will be read", async () => {
    await running(async (request, response) => response.end(await bodyOf(request)));
    const request = open({ headers: { expect: "100-continue", "content-length": 4 } });
    request.flushHeaders();
    await once(request, "continue");
    request.end("data");
    expect(await chunkOf(await responseTo(request))).toBe("data");
    const headers = { host: "nobody.default.localhost", expect: "100-continue" };
    const refused = open({ headers: { ...headers, "content-length": 4 } });
    refused.on("continue", () => refused.destroy(new Error("asked for in vain")));
    refused.flushHeaders();
    expect((await responseTo(refused)).statusCode).toBe(404);
    refused.destroy();
  });

  test("of a client that goes away ends the request to the Pod", async () => {
    const arrived = Promise.withResolvers<http.ServerResponse>();
    await running((_, response) => arrived.resolve(response));
    const request = open({ method: "GET" }).end();
    const response = await arrived.promise;
    request.destroy();
    await once(response, "close");
    expect(response.writableFinished).toBe(false);
  });

  test("that the Pod breaks off is broken off for the client too", async () => {
    await running((_, response) => {
      response.writeHead(200, { "content-length": 10 });
      response.write("half");
      setTimeout(() => response.destroy(), 20);
    });
    const response = await responseTo(open({ method: "GET" }).end());
    await expect(bodyOf(response)).rejects.toThrow("aborted");
  });

  test("that is not read to its end does not spoil the connection's next request", async () => {
    await running((_, response) => response.writeHead(413).end("no"));
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const body = Buffer.alloc(1 << 20);
    for (let i = 0; i < 3; i++) {
      expect((await bench.call({ method: "POST", body, agent })).status).toBe(413);
    }
    agent.destroy();
  });
});

test("a response's head is passed on at once, before there is any body", async () => {
  await running((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
  });
  const response = await responseTo(open({ method: "GET" }).end());
  expect(response.headers["content-type"]).toBe("text/event-stream");
  response.destroy();
});

test("HTTP/1.0 is spoken too", async () => {
  await running((_, response) => {
    response.write("one,");
    response.end("two");
  });
  const socket = await bench.raw();
  socket.write("GET / HTTP/1.0\r\nhost: hello.default.localhost\r\n\r\n");
  expect((await bodyOf(socket)).toString()).toMatch(/\r\n\r\none,two$/);
});

test("early hints are passed on", async () => {
  await running((_, response) => {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    response.end("x");
  });
  const request = open({ method: "GET" });
  const hints = once(request, "information") as Promise<[http.InformationEvent]>;
  const response = responseTo(request.end());
  expect((await hints)[0]).toMatchObject({ statusCode: 103 });
  expect((await response).statusCode).toBe(200);
});

test("connections are kept alive on both sides", async () => {
  const pod = await running((_, response) => response.end("x"));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < 5; i++) await bench.call({ agent });
  expect(new Set(pod.seen.map(({ socket }) => socket.remotePort)).size).toBe(1);
  agent.destroy();
});

describe("an upgraded connection", () => {
  const upgradeRequest =
    "GET /chat HTTP/1.1\r\nhost: hello.default.localhost\r\nconnection: Upgrade\r\n" +
    "upgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n";

  function accept(pod: TestPod, talk: (socket: Socket) => void): void {
    pod.server.on("upgrade", (request: http.IncomingMessage, socket: Socket) => {
      const key = String(request.headers["sec-websocket-key"]);
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n" +
          `x-key: ${key}\r\n\r\nhello`,
      );
      talk(socket);
    });
  }

  test("carries bytes both ways and ends one way at a time", async () => {
    const pod = await running((_, response) => response.end());
    accept(pod, (socket) => {
      let received = "";
      socket.on("data", (chunk: Buffer) => (received += chunk.toString()));
      socket.on("end", () => socket.end(`got ${received}`));
    });
    const client = await bench.raw();
    client.end(`${upgradeRequest}first`);
    const text = (await bodyOf(client)).toString();
    expect(text).toMatch(/^HTTP\/1.1 101 Switching Protocols\r\n/);
    expect(text).toContain("x-key: abc\r\n");
    expect(text).toMatch(/\r\n\r\nhellogot first$/);
  });

  test("ends when the other side is lost", async () => {
    const pod = await running((_, response) => response.end());
    const sockets: Socket[] = [];
    accept(pod, (socket) => sockets.push(socket.on("error", () => {})));
    const client = await bench.raw();
    client.on("error", () => {});
    client.write(upgradeRequest);
    await chunkOf(client);
    sockets[0]?.resetAndDestroy();
    await closed(client);
    const other = await bench.raw();
    other.write(upgradeRequest);
    await chunkOf(other);
    const [, second] = sockets;
    other.resetAndDestroy();
    if (second) await closed(second);
    expect(sockets).toHaveLength(2);
  });

  test("is a WebSocket to those who speak it", async () => {
    const pod = await running((_, response) => response.end());
    new WebSocketServer({ server: pod.server }).on("connection", (socket) => {
      socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
      socket.on("close", (code) => codes.push(code));
    });
    const codes: number[] = [];
    const headers = { host: "hello.default.localhost" };
    const client = new WebSocket(`ws://127.0.0.1:${bench.port}/chat`, { headers });
    await once(client, "open");
    const sent = Buffer.alloc(1 << 20, "frame");
    client.send(sent);
    const [received] = (await once(client, "message")) as [Buffer];
    expect(received.equals(sent)).toBe(true);
    client.close(4001);
    await once(client, "close");
    await expect.poll(() => codes).toEqual([4001]);
  });

  test("may be declined with an ordinary answer", async () => {
    await running((_, response) => response.writeHead(426).end("not here"));
    const client = await bench.raw();
    client.write(upgradeRequest);
    const text = (await bodyOf(client)).toString();
    expect(text).toMatch(/^HTTP\/1.1 426 /);
    expect(text).toContain("not here");
    client.destroy();
  });

  test("to an unknown Function is refused", async () => {
    const client = await bench.raw();
    client.write(upgradeRequest);
    expect((await bodyOf(client)).toString()).toMatch(/^HTTP\/1.1 404 /);
    client.destroy();
  });

  test("is not what an offer of HTTP/2 gets", async () => {
    await running(async (request, response) => response.end(await bodyOf(request)));
    const headers = {
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
      "http2-settings": "x",
    };
    const answer = await bench.call({ method: "POST", headers, body: "plain" });
    expect(answer).toMatchObject({ status: 200, body: "plain" });
  });
});

test("closed, it first goes on accepting connections, for one answer each", async () => {
  const leaveMs = 5_000;
  const isOver = Promise.withResolvers<void>();
  const clock: Clock = {
    ...systemClock,
    after: (ms, act) =>
      ms === leaveMs ? (void isOver.promise.then(act), () => {}) : systemClock.after(ms, act),
  };
  await bench.close();
  bench = await startBench({ leaveMs, clock });
  await running((_, response) => response.end("served"));
  const agent = new http.Agent({ keepAlive: true });
  expect((await bench.call({ agent })).headers["connection"]).toBe("keep-alive");
  const closed = bench.gateway.close();
  for (const options of [{ agent }, {}])
    expect(await bench.call(options)).toMatchObject({
      status: 200,
      headers: { connection: "close" },
    });
  isOver.resolve();
  await closed;
  await expect(bench.call()).rejects.toThrow("ECONNREFUSED");
  agent.destroy();
});

test("closing lets requests under way end, and then ends everything", async () => {
  const drainMs = 60_000;
  await bench.close();
  bench = await startBench({ drainMs });
  const pod = await running((_, response) => setTimeout(() => response.end("late"), 150));
  const agent = new http.Agent({ keepAlive: true });
  const pending = bench.call({ agent });
  await once(pod.server, "request");
  const start = Date.now();
  const closed = bench.gateway.close();
  expect((await pending).body).toBe("late");
  await closed;
  // At once, not when the time for it is over.
  expect(Date.now() - start).toBeLessThan(drainMs / 2);
  agent.destroy();
});
