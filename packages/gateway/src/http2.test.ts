/** HTTP/2 from clients: the same requests and responses as over HTTP/1.1, and attacks that cost the client little. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import * as http2 from "node:http2";
import { connect, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { certificateFor } from "@spry/test-kit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bodyOf, type PodHandler, type TestPod } from "./testing/bench.ts";
import { type ExposureBench, plain, secured, startExposureBench } from "./testing/exposure.ts";
import {
  empty,
  endHeaders,
  endStream,
  frame,
  framesUntil,
  frameType,
  headerBlock,
  opening,
  requestTo,
} from "./testing/http2-frames.ts";

let bench: ExposureBench;
let pod: TestPod;
let answer: PodHandler;
const sessions: http2.ClientHttp2Session[] = [];
const host = "dice.example.com";
const hosts = ["*.example.com"];
const methods = ["GET", "POST", "HEAD", "OPTIONS"];

async function start(options: Parameters<typeof startExposureBench>[0] = {}): Promise<void> {
  bench = await startExposureBench({ https: { port: 0 }, ...options });
  pod = await bench.pod((request, response) => answer(request, response));
  await bench.service();
  await bench.endpoints([pod]);
  await bench.gatewayOf("kyma-gateway", [plain(hosts), secured(hosts, "web")]);
  for (const name of ["dice", "other"])
    await bench.apiRule(name, { rules: [{ path: "/*", methods, noAuth: true }] });
  await bench.certificates({ "kyma-system.web": await certificateFor("*.example.com") });
}

beforeEach(async () => {
  answer = async (request, response) => {
    const body = await bodyOf(request);
    response.end(`${request.method} ${request.url} ${body.length}`);
  };
  await start();
});
afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  await bench.close();
});

const port = () => bench.gateway.httpsPort ?? 0;

function open(): http2.ClientHttp2Session {
  const session = http2.connect(`https://127.0.0.1:${port()}`, {
    servername: host,
    rejectUnauthorized: false,
  });
  session.on("error", () => {});
  sessions.push(session);
  return session;
}

interface Answered {
  headers: http2.IncomingHttpHeaders;
  trailers: http2.IncomingHttpHeaders;
  body: string;
  code: number;
}

/** The whole exchange; `code` is that of the stream's end. */
function ask(
  session: http2.ClientHttp2Session,
  headers: http2.OutgoingHttpHeaders = {},
  body?: Buffer,
): Promise<Answered> {
  const stream = session.request(
    { ":authority": host, ...headers },
    { endStream: body === undefined },
  );
  if (body) stream.end(body);
  return answered(stream);
}

function answered(stream: http2.ClientHttp2Stream): Promise<Answered> {
  const result: Answered = { headers: {}, trailers: {}, body: "", code: 0 };
  return new Promise((resolve) => {
    stream.on("response", (received) => (result.headers = received));
    stream.on("trailers", (received) => (result.trailers = received));
    stream.on("data", (chunk: Buffer) => (result.body += chunk.toString()));
    stream.on("error", () => {});
    stream.once("close", () => resolve({ ...result, code: stream.rstCode }));
  });
}

describe("a request over HTTP/2", () => {
  test("is one of HTTP/1.1 for the Pod", async () => {
    answer = (_request, response) => {
      response.setHeader("set-cookie", ["a=1", "b=2"]).setHeader("connection", "x-mine");
      response.setHeader("x-mine", "1").end("in");
    };
    const received = await ask(open(), {
      ":path": "/a?b",
      cookie: ["c=1", "d=2"],
      "x-forwarded-for": "1.2.3.4",
      "x-forwarded-proto": "gopher",
      te: "trailers",
    });
    expect(received).toMatchObject({
      body: "in",
      headers: { ":status": 200, "set-cookie": ["a=1", "b=2"] },
    });
    expect(received.headers).not.toHaveProperty("x-mine");
    const [seen] = pod.seen;
    expect(seen).toMatchObject({ method: "GET", url: "/a?b", httpVersion: "1.1" });
    expect(seen?.headers).toMatchObject({
      host,
      cookie: "c=1; d=2",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "https",
    });
    expect(seen?.headers).not.toHaveProperty("te");
    expect(seen?.rawHeaders.filter((name) => name.startsWith(":"))).toEqual([]);
  });

  test.each([
    ["of a known length", { "content-length": "5" }, Buffer.from("hello")],
    ["of unknown length", {}, Buffer.from("hello")],
    ["of more than a window", {}, Buffer.alloc(3_000_000)],
    ["of no bytes", {}, empty],
  ])("has a body %s", async (_, headers, body) => {
    const received = await ask(open(), { ":method": "POST", ...headers }, body);
    expect(received).toMatchObject({ headers: { ":status": 200 }, body: `POST / ${body.length}` });
  });

  test("is answered with the bytes that the Pod has sent", async () => {
    const bytes = Buffer.from("größer als Latin-1: €");
    answer = (_request, response) => response.setHeader("content-length", bytes.length).end(bytes);
    expect((await ask(open())).body).toBe(bytes.toString());
  });

  test("has trailers, early hints, and no body where HTTP has none", async () => {
    answer = (_request, response) => {
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      response.writeHead(200, { trailer: "x-sum" });
      response.write("in");
      response.addTrailers({ "x-sum": "7" });
      response.end();
    };
    const session = open();
    const early: unknown[] = [];
    const stream = session.request({ ":authority": host });
    stream.on("headers", (headers) => early.push(headers["link"]));
    expect(await answered(stream)).toMatchObject({ body: "in", trailers: { "x-sum": "7" } });
    expect(early).toEqual(["</a.css>; rel=preload"]);
    answer = (_request, response) => response.writeHead(200, { "content-length": "9" }).end();
    const head = await ask(session, { ":method": "HEAD" });
    expect(head).toMatchObject({ body: "", code: 0, headers: { "content-length": "9" } });
  });

  test("waits for 100 Continue until its body is wanted", async () => {
    const stream = open().request(
      { ":authority": host, ":method": "POST", expect: "100-continue" },
      { endStream: false },
    );
    stream.once("continue", () => stream.end("body"));
    expect(await answered(stream)).toMatchObject({ body: "POST / 4" });
  });

  test.each<[string, http2.OutgoingHttpHeaders, number]>([
    ["for a host that the connection is not for", { ":authority": "other.example.com" }, 421],
    ["with another host than its authority", { host: "other.example.com" }, 400],
    ["whose path has several readings", { ":path": "/a%5c.." }, 400],
    ["with a method that no rule names", { ":method": "PUT" }, 404],
    ["of CONNECT", { ":method": "CONNECT", ":authority": "10.0.0.1:22" }, 405],
  ])("is refused %s: %j gets %d", async (_, headers, status) => {
    const received = await ask(open(), headers);
    expect(received.headers[":status"]).toBe(status);
    expect(pod.seen).toEqual([]);
  });

  test("that its client abandons is abandoned at the Pod", async () => {
    let left: () => void = () => {};
    const abandoned = new Promise<void>((resolve) => (left = resolve));
    answer = (_request, response) => void response.once("close", left);
    const stream = open().request({ ":authority": host });
    await expect.poll(() => pod.seen.length).toBe(1);
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await abandoned;
  });

  test("whose response breaks off says so, and others on the connection go on", async () => {
    const session = open();
    answer = (request, response) => {
      if (request.url === "/ok") return response.end("ok");
      response.writeHead(200, { "content-length": "100" });
      return response.write("half", () => response.destroy());
    };
    const [broken, good] = await Promise.all([ask(session), ask(session, { ":path": "/ok" })]);
    expect(broken).toMatchObject({ code: http2.constants.NGHTTP2_INTERNAL_ERROR });
    expect(good).toMatchObject({ body: "ok", code: 0 });
  });

  test("under way is finished when the gateway closes, and the client learns of it", async () => {
    const session = open();
    let finish = () => {};
    answer = (_request, response) => (finish = () => response.end("done"));
    const asked = ask(session);
    await expect.poll(() => pod.seen.length).toBe(1);
    const goaway = new Promise<number>((resolve) => session.once("goaway", resolve));
    const closed = bench.gateway.close();
    expect(await goaway).toBe(http2.constants.NGHTTP2_NO_ERROR);
    finish();
    expect(await asked).toMatchObject({ body: "done" });
    await closed;
  });
});

describe("programs agree on a version:", () => {
  const curl = async (...args: string[]) => {
    const to = ["--resolve", `${host}:${port()}:127.0.0.1`, "-sSk", "-w", " %{http_version}"];
    const url = `https://${host}:${port()}/`;
    const { stdout } = await promisify(execFile)("curl", [...to, ...args, url]);
    return stdout;
  };

  test("curl, with both, with one, and with a body", async () => {
    expect(await curl("--http2")).toBe("GET / 0 2");
    expect(await curl("--http1.1")).toBe("GET / 0 1.1");
    expect(await curl("--http2", "-d", "abc")).toBe("POST / 3 2");
    expect(await curl("--http2", "-I")).toContain("HTTP/2 200");
  });

  test.skipIf(!existsSync("/usr/bin/h2load"))("h2load, many at once", async () => {
    const url = `https://${host}:${port()}/`;
    const to = `--connect-to=127.0.0.1:${port()}`;
    const load = ["-n2000", "-c10", "-m20", to, url];
    const { stdout } = await promisify(execFile)("h2load", load);
    expect(stdout).toContain("2000 succeeded, 0 failed");
    expect(stdout).toContain("Application protocol: h2");
    expect(pod.seen).toHaveLength(2_000);
  });

  test("WebSockets stay with HTTP/1.1", async () => {
    pod.server.on("upgrade", (_request, socket) => {
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
      );
      socket.pipe(socket);
    });
    const to = { host: "127.0.0.1", port: port(), servername: host, rejectUnauthorized: false };
    const socket = connect({ ...to, ALPNProtocols: ["http/1.1"] });
    socket.write(
      `GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`,
    );
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await expect.poll(() => text).toContain("101 Switching Protocols");
    socket.write("ping");
    await expect.poll(() => text).toMatch(/ping$/);
    socket.destroy();
  });
});

/** The handshake is done, and HTTP/2 agreed on. */
function raw(): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const to = { host: "127.0.0.1", port: port(), servername: host, rejectUnauthorized: false };
    const socket = connect({ ...to, ALPNProtocols: ["h2"] });
    socket.once("secureConnect", () => resolve(socket)).once("error", reject);
  });
}

const wholeHead = endHeaders | endStream;
const head = (stream: number, more: [string, string][] = [], flags = wholeHead) =>
  frame(frameType.headers, flags, stream, headerBlock([...requestTo(host), ...more]));

describe("an attack ends its own connection, and no other:", () => {
  const streams = (count: number) => Array.from({ length: count }, (_, n) => 2 * n + 1);
  const reset = (stream: number) => frame(frameType.reset, 0, stream, Buffer.from([0, 0, 0, 8]));

  test.each<[string, () => Buffer[], RegExp]>([
    [
      "streams that are reset at once",
      () => streams(2_000).flatMap((stream) => [head(stream), reset(stream)]),
      /^goaway 0 2$/,
    ],
    [
      "a head that never ends, in small frames",
      () => [
        head(1, [], endStream),
        ...streams(5_000).map(() => frame(frameType.continuation, 0, 1, headerBlock([["x", "y"]]))),
      ],
      /^goaway 0 \d+$/,
    ],
    [
      "a head that never ends, in empty frames",
      () => [
        head(1, [], endStream),
        ...streams(5_000).map(() => frame(frameType.continuation, 0, 1, empty)),
      ],
      /^goaway 0 \d+$/,
    ],
    [
      "pings",
      () => streams(20_000).map(() => frame(frameType.ping, 0, 0, Buffer.alloc(8))),
      /^goaway 0 \d+$|^ping 0$/,
    ],
    [
      "settings",
      () => streams(20_000).map(() => frame(frameType.settings, 0, 0, empty)),
      /^goaway 0 \d+$|^settings 0$/,
    ],
    [
      "more requests than there may be, again and again",
      () => streams(3_000).map((stream) => head(stream, [], endHeaders)),
      /^goaway 0 \d+$|^reset \d+ 7$/,
    ],
  ])("%s", async (_, attack, expected) => {
    answer = (request, response) => {
      if (request.url === "/good") response.end("good");
    };
    const good = open();
    const socket = await raw();
    const frames = framesUntil(socket, expected);
    socket.write(Buffer.concat([opening, ...attack()]));
    // Responses do not accumulate for a client that does not read them.
    const before = process.memoryUsage().heapUsed;
    expect(await ask(good, { ":path": "/good" })).toMatchObject({ body: "good" });
    const seen = await frames;
    expect(seen.find((each) => expected.test(each))).toBeDefined();
    expect(pod.seen.length).toBeLessThan(1_100);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 * 1024 ** 2);
    expect(await ask(good, { ":path": "/good" })).toMatchObject({ body: "good" });
  });

  test.each<[string, [string, string][]]>([
    ["of too many headers", Array.from({ length: 600 }, (_, n) => [`x-${n}`, ""])],
    ["with a header of one connection", [["connection", "close"]]],
    ["with a coding", [["transfer-encoding", "chunked"]]],
    ["with capitals", [["X-Mine", "1"]]],
    [
      "with a pseudo-header after others",
      [
        ["x", "y"],
        [":path", "/b"],
      ],
    ],
    [
      "with two lengths",
      [
        ["content-length", "1"],
        ["content-length", "2"],
      ],
    ],
    ["of a WebSocket (RFC 8441)", [[":protocol", "websocket"]]],
  ])("a head %s is refused", async (_, more) => {
    const socket = await raw();
    const isRefused = /^(reset 1 \d+|goaway 0 (1|9|11))$/;
    const frames = framesUntil(socket, isRefused);
    const block = headerBlock([...requestTo(host), ...more]);
    const parts = [
      block.subarray(0, 16_000),
      block.subarray(16_000, 32_000),
      block.subarray(32_000),
    ];
    const present = parts.filter((part) => part.length > 0);
    const last = present.length - 1;
    socket.write(
      Buffer.concat([
        opening,
        ...present.map((part, n) =>
          n === 0
            ? frame(frameType.headers, endStream | (last === 0 ? endHeaders : 0), 1, part)
            : frame(frameType.continuation, n === last ? endHeaders : 0, 1, part),
        ),
      ]),
    );
    expect(await frames).toContainEqual(expect.stringMatching(isRefused));
    expect(pod.seen).toHaveLength(0);
  });

  test("a head that is too large is refused, whatever its client has agreed to", async () => {
    const large = { "x-large": "y".repeat(33 * 1024) };
    expect((await ask(open(), large)).headers[":status"]).not.toBe(200);
    const session = http2.connect(`https://127.0.0.1:${port()}`, {
      servername: host,
      rejectUnauthorized: false,
      maxSendHeaderBlockLength: 64 * 1024,
    });
    session.on("error", () => {});
    sessions.push(session);
    const received = await ask(session, large);
    expect([431, undefined]).toContain(received.headers[":status"]);
    expect(pod.seen).toHaveLength(0);
  });

  test("a header whose value has a line end is not passed on", async () => {
    const socket = await raw();
    const frames = framesUntil(socket, /^headers 1$/);
    const block = headerBlock([...requestTo(host), ["x", "a\r\nb: c"]]);
    socket.write(Buffer.concat([opening, frame(frameType.headers, wholeHead, 1, block)]));
    expect(await frames).toContain("headers 1");
    expect(pod.seen[0]?.rawHeaders.map((each) => each.toLowerCase())).not.toContain("x");
    expect(pod.seen[0]?.headers).not.toHaveProperty("b");
  });

  test("a request whose length is not that of its body is refused", async () => {
    const socket = await raw();
    const isRefused = /^(reset 1 1|goaway 0 [12])$/;
    const frames = framesUntil(socket, isRefused);
    const block = headerBlock([...requestTo(host, "/", "POST"), ["content-length", "3"]]);
    const data = frame(frameType.data, endStream, 1, Buffer.from("too long"));
    socket.write(Buffer.concat([opening, frame(frameType.headers, endHeaders, 1, block), data]));
    expect(await frames).toContainEqual(expect.stringMatching(isRefused));
    expect(pod.seen).toEqual([]);
  });

  test("requests count as connections do: an address gets no more of them", async () => {
    await bench.close();
    answer = () => {};
    await start({ maxConnectionsOfAddress: 3 });
    const session = open();
    for (let n = 0; n < 3; n++) void ask(session);
    await expect.poll(() => pod.seen.length).toBe(3);
    expect(await ask(session)).toMatchObject({ code: http2.constants.NGHTTP2_REFUSED_STREAM });
  });

  test("a connection without a request ends after a time, whatever trickles in", async () => {
    await bench.close();
    await start({ headTimeoutMs: 400 });
    const socket = await raw();
    const frames = framesUntil(socket);
    socket.write(opening);
    const drip = setInterval(() => {
      socket.write(frame(frameType.ping, 0, 0, Buffer.alloc(8)));
    }, 50);
    expect(await frames).toContain("goaway 0 0");
    clearInterval(drip);
  });
});
