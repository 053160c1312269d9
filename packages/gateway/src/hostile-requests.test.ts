/** Bytes that two readers could understand differently, that never end, or that make much of little. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, bodyOf, callGateway, startBench, type TestPod } from "./testing/bench.ts";

type Conditions = NonNullable<Parameters<Bench["fn"]>[0]>;

let bench: Bench;
let pod: TestPod;
beforeEach(async () => {
  await begin();
});
afterEach(() => bench.close());

async function begin(options: Parameters<typeof startBench>[0] = {}): Promise<void> {
  bench = await startBench(options);
  pod = await bench.pod(async (request, response) => {
    const body = (await bodyOf(request)).toString();
    // Begun without its end, so that its length is not known.
    response.write(`seen ${request.url} ${body}`);
    setImmediate(() => response.end());
  });
  await bench.service();
  await bench.endpoints([pod]);
}

const host = "host: hello.default.localhost\r\n";
const get = `GET / HTTP/1.1\r\n${host}`;
const post = `POST / HTTP/1.1\r\n${host}`;
const chunks = "2\r\nab\r\n0\r\n\r\n";
/** What an attacker hides behind it must never be taken for a request. */
const hidden = `GET /hidden HTTP/1.1\r\n${host}connection: close\r\n\r\n`;

describe("a head that two readers could understand differently is refused, and nothing behind it is read", () => {
  test.each([
    ["length and chunks", `${post}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`, 400],
    ["chunks and length", `${post}transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n${chunks}`, 400],
    ["two lengths", `${post}content-length: 2\r\ncontent-length: 0\r\n\r\nab`, 400],
    ["the same length twice", `${post}content-length: 2\r\ncontent-length: 2\r\n\r\nab`, 400],
    ["a list of lengths", `${post}content-length: 2, 2\r\n\r\nab`, 400],
    ["a length with a sign", `${post}content-length: +2\r\n\r\nab`, 400],
    ["a hexadecimal length", `${post}content-length: 0x2\r\n\r\nab`, 400],
    ["chunks that are not last", `${post}transfer-encoding: chunked, identity\r\n\r\n${chunks}`, 400],
    ["another coding", `${post}transfer-encoding: xchunked\r\n\r\n${chunks}`, 501],
    ["a coding before chunks", `${post}transfer-encoding: gzip, chunked\r\n\r\n${chunks}`, 501],
    ["chunks twice", `${post}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`, 400],
    ["a space before the colon", `${post}transfer-encoding : chunked\r\n\r\n${chunks}`, 400],
    ["a folded header", `${get}x: 1\r\n  folded\r\n\r\n`, 400],
    ["a folded coding", `${post}transfer-encoding:\r\n chunked\r\n\r\n${chunks}`, 400],
    ["bare line feeds", "GET / HTTP/1.1\nhost: hello.default.localhost\n\n", 400],
    ["one bare line feed", "GET / HTTP/1.1\r\nhost: hello.default.localhost\nx: 1\r\n\r\n", 400],
    ["a bare carriage return", `${get}x: a\rb\r\n\r\n`, 400],
    ["a NUL", `${get}x: a\0b\r\n\r\n`, 400],
    ["chunks that end in line feeds", `${post}transfer-encoding: chunked\r\n\r\n2\nab\n0\n\n`, 400],
    ["a line feed in a chunk's extension", `${post}transfer-encoding: chunked\r\n\r\n2;a\nb\r\nab\r\n0\r\n\r\n`, 400],
    ["a chunk size with a sign", `${post}transfer-encoding: chunked\r\n\r\n+2\r\nab\r\n0\r\n\r\n`, 400],
    ["two hosts", `${get}host: other.default.localhost\r\n\r\n`, 400],
    ["the same host twice", `${get}${host}\r\n`, 400],
    ["no host", "GET / HTTP/1.1\r\n\r\n", 400],
    ["no host, but one in the target", "GET http://hello.default.localhost/ HTTP/1.1\r\n\r\n", 400],
    ["a target without a slash", `GET hello HTTP/1.1\r\n${host}\r\n`, 400],
    ["a target of another scheme", `GET ftp://hello.default.localhost/ HTTP/1.1\r\n${host}\r\n`, 400],
    ["a tab in the target", `GET /a\tb HTTP/1.1\r\n${host}\r\n`, 400],
    ["a high byte in the target", `GET /\x80 HTTP/1.1\r\n${host}\r\n`, 400],
    ["HTTP/1.2", `GET / HTTP/1.2\r\n${host}\r\n`, 400],
    ["HTTP/2.0 in words", `GET / HTTP/2.0\r\n${host}\r\n`, 505],
    ["chunks of HTTP/1.0", `POST / HTTP/1.0\r\n${host}transfer-encoding: chunked\r\n\r\n${chunks}`, 400],
    ["a user in the target", `GET http://hello.default.localhost@evil/ HTTP/1.1\r\n${host}\r\n`, 400],
  ])("%s", async (_, bytes, status) => {
    const answer = await bench.exchange(bytes + hidden);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/\r\nx-spry-reason: \w+\r\n/);
    expect(answer.toLowerCase()).toContain("\r\nconnection: close\r\n");
    expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
    expect(pod.seen.map(({ url }) => url)).not.toContain("/hidden");
  });
}); // prettier-ignore

describe("the target", () => {
  test("in absolute form wins over Host (RFC 9112 section 3.2.2)", async () => {
    const target = "http://HELLO.default.localhost:8080/a?b";
    const answer = await bench.exchange(
      `GET ${target} HTTP/1.1\r\nhost: other.secret.localhost\r\nconnection: close\r\n\r\n`,
    );
    expect(answer).toContain("seen /a?b");
    expect(pod.seen[0]?.rawHeaders.filter((each) => each.toLowerCase() === "host")).toHaveLength(1);
    expect(pod.seen[0]?.headers).toMatchObject({
      host: "HELLO.default.localhost:8080",
      "x-forwarded-host": "HELLO.default.localhost:8080",
    });
  });

  test("of another host is not the Function that Host names", async () => {
    const answer = await bench.exchange(
      `GET http://evil.example/ HTTP/1.1\r\n${host}connection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 404 .*evil\.example/s);
    expect(pod.seen).toEqual([]);
  });

  test("without a path is the root", async () => {
    const answer = await bench.exchange(
      `GET http://hello.default.localhost?q HTTP/1.1\r\n${host}connection: close\r\n\r\n`,
    );
    expect(answer).toContain("seen /?q");
  });
});

describe("HTTP/1.0", () => {
  test.each([
    ["by itself", ""],
    ["that asks for chunks", "te: chunked\r\n"],
    ["that asks to be kept", "connection: keep-alive\r\n"],
    ["that asks for both", "connection: keep-alive, te\r\nte: chunked, trailers\r\n"],
  ])("%s gets no chunks, and the answer ends with the connection", async (_, headers) => {
    const answer = await bench.exchange(`GET /old HTTP/1.0\r\n${host}${headers}\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(answer).not.toMatch(/transfer-encoding/i);
    expect(answer).toMatch(/\r\n\r\nseen \/old $/);
  });

  test("gets no interim answer, and no upgrade", async () => {
    const answer = await bench.exchange(
      `POST / HTTP/1.0\r\n${host}expect: 100-continue\r\ncontent-length: 2\r\n\r\nab`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 .*ab$/s);
    await bench.exchange(
      `GET / HTTP/1.0\r\n${host}connection: upgrade\r\nupgrade: websocket\r\n\r\n`,
    );
    expect(pod.seen[1]?.headers).not.toHaveProperty("upgrade");
  });
});

describe("heads", () => {
  test("of nearly 32 KiB reach the Pod whole, and its answer's comes back", async () => {
    const large = "y".repeat(31 * 1024);
    const answering = await bench.pod((_, response) => response.setHeader("x-large", large).end());
    await bench.endpoints([answering]);
    const answer = await bench.call({ headers: { "x-large": large } });
    expect(answer.status).toBe(200);
    expect(answer.headers["x-large"]).toBe(large);
    expect(answering.seen[0]?.headers["x-large"]).toBe(large);
  });

  test("with thousands of headers lose none of them", async () => {
    const answer = await bench.exchange(
      `${get}${"x:\r\n".repeat(2_500)}x-last: here\r\nconnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(pod.seen[0]?.rawHeaders.filter((each) => each === "x")).toHaveLength(2_500);
    expect(pod.seen[0]?.headers["x-last"]).toBe("here");
  });

  test.each([
    ["one header", `${get}x: ${"y".repeat(33 * 1024)}\r\n\r\n`],
    ["many headers", `${get}${"x: 1\r\n".repeat(20_000)}\r\n`],
    ["the target", `GET /${"y".repeat(33 * 1024)} HTTP/1.1\r\n${host}\r\n`],
    ["a header without end", `${get}x: ${"y".repeat(40 * 1024)}`],
  ])("beyond 32 KiB by %s are refused as too large", async (_, bytes) => {
    const answer = await bench.exchange(bytes);
    expect(answer).toMatch(/^HTTP\/1.1 431 .*larger than 32 KiB\n$/s);
    expect(pod.seen).toEqual([]);
  });

  test("of an answer beyond 32 KiB are named as the reason", async () => {
    const large = await bench.pod((_, response) =>
      response.setHeader("x", "y".repeat(40 * 1024)).end(),
    );
    await bench.endpoints([large]);
    const answer = await bench.call();
    expect(answer).toMatchObject({
      status: 502,
      headers: { "x-spry-reason": "UpstreamHeadersTooLarge" },
    });
    expect(answer.body).toBe("Function default/hello responded with headers larger than 32 KiB\n");
    expect(large.seen).toHaveLength(1);
  });

  test("that come byte by byte end with 408, and others are served meanwhile", async () => {
    await bench.close();
    await begin({ headTimeoutMs: 300 });
    const slow = Array.from({ length: 50 }, async () => {
      const socket = await bench.raw();
      socket.write(get);
      const drip = setInterval(() => socket.write("x: y\r\n"), 50);
      const answer = (await bodyOf(socket)).toString();
      clearInterval(drip);
      socket.destroy();
      return answer;
    });
    expect((await bench.call()).status).toBe(200);
    for (const answer of await Promise.all(slow)) expect(answer).toMatch(/^HTTP\/1.1 408 /);
  });
});

test("hosts that clients make up get no rows among the metrics", async () => {
  for (let i = 0; i < 20; i++) await bench.call({ host: `made-up-${i}.default.localhost` });
  await bench.call({ host: `${"x".repeat(60)}.example` });
  await bench.fn(
    [{ type: "BuildReady", status: "False", reason: "JobFailed", message: "" }],
    "broken",
  );
  await bench.call({ host: "broken.default.localhost" });
  await bench.call();
  const admin = await bench.kit.listenAdmin({ host: "127.0.0.1", port: 0 });
  const text = await (await fetch(`http://127.0.0.1:${admin.port}/metrics`)).text();
  await admin.close();
  expect(
    [...text.matchAll(/_count\{(.*)\} (\d+)/g)].map(([, labels, count]) => [labels, count]),
  ).toEqual([
    ['namespace="",function="",code="404"', "21"],
    ['namespace="default",function="broken",code="503"', "1"],
    ['namespace="default",function="hello",code="200"', "1"],
  ]);
});

test("beyond loopback, answers say nothing of the machine, of the code's errors, or of other Functions", async () => {
  const message =
    "Build failed: /root/project/node_modules/x: EACCES\nError: password hunter2 in /srv/app.js";
  const failed: Conditions = [
    { type: "BuildReady", status: "False", reason: "JobFailed", message },
  ];
  await bench.fn(failed, "broken");
  const open = await bench.kit.listen({ host: "0.0.0.0", port: 0 });
  const ask = async (port: number, name: string) => {
    const response = await callGateway(port, { host: `${name}.default.localhost` });
    return `${response.status} ${String(response.headers["x-spry-reason"])} ${response.body}`;
  };
  expect(await ask(open.port, "broken")).toBe(
    "503 JobFailed Function default/broken is not ready: the reason is in the Function's conditions\n",
  );
  expect(await ask(open.port, "absent")).toBe(
    "404 FunctionNotFound Function absent not found in namespace default\n",
  );
  expect(await ask(bench.port, "broken")).toContain("/root/project/node_modules/x: EACCES");
  await open.close();
});
