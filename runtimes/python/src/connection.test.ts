import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingPython, pause, PythonRuntime } from "./testing.ts";

const source = `
def main(event, context):
    request = event["extensions"]["request"]
    if request.path == "/stream":
        return ("x" * 1000 for _ in range(3))
    return request.method + " " + request.path + " " + str(len(request.body.read()))
`;

const crlf = (...lines: string[]): string => lines.join("\r\n");
const get = (...fields: string[]): string => crlf("GET / HTTP/1.1", "Host: a", ...fields, "", "");
const post = (...fields: string[]): string => crlf("POST / HTTP/1.1", "Host: a", ...fields, "", "");

const refused: [name: string, bytes: string, status: number][] = [
  ["no request line", "hello\r\n\r\n", 400],
  ["binary bytes", "\x16\x03\x01\x02\r\n\r\n", 400],
  ["two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["another version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505],
  ["a target without slash", "GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405],
  ["no host", "GET / HTTP/1.1\r\n\r\n", 400],
  ["two hosts", get("Host: b"), 400],
  ["a folded field", get("A: b", " c"), 400],
  ["a blank before the colon", get("A : b"), 400],
  ["no colon", get("A"), 400],
  ["a bare line feed", "GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n", 400],
  ["a NUL", get("A: \0"), 400],
  ["two lengths", post("Content-Length: 1", "Content-Length: 2"), 400],
  ["a length and chunks", post("Content-Length: 1", "Transfer-Encoding: chunked"), 400],
  ["a signed length", post("Content-Length: +1"), 400],
  ["a length in words", post("Content-Length: one"), 400],
  ["another coding", post("Transfer-Encoding: gzip, chunked"), 501],
  ["a chunk size with a sign", `${post("Transfer-Encoding: chunked")}+1\r\na\r\n0\r\n\r\n`, 400],
  ["a chunk size of 2^64", `${post("Transfer-Encoding: chunked")}ffffffffffffffff\r\n`, 400],
  ["a chunk without its end", `${post("Transfer-Encoding: chunked")}1\r\nab\r\n`, 400],
  ["a chunk line without end", `${post("Transfer-Encoding: chunked")}1;${"x".repeat(300)}`, 400],
  ["another expectation", post("Expect: cake", "Content-Length: 1"), 417],
  ["a long head", get(`A: ${"x".repeat(40_000)}`), 431],
  ["a long request line", `GET /${"x".repeat(40_000)}`, 431],
  ["many fields", get(...Array.from({ length: 101 }, (_, i) => `A${i}: b`)), 431],
  ["a long body", post("Content-Length: 1048577"), 413],
  ["a long body that asks first", post("Content-Length: 1048577", "Expect: 100-continue"), 413],
  ["a long chunked body", `${post("Transfer-Encoding: chunked")}100001\r\n`, 413],
];

const blocks: [name: string, code: string][] = [
  ["def main", source],
  ["async def main", source.replace("def main", "async def main")],
];

describe.skipIf(missingPython).each(blocks)("a connection to %s", (_name, code) => {
  let runtime: PythonRuntime;
  beforeAll(async () => {
    runtime = await PythonRuntime.start(code, { FUNC_BODY_MB_LIMIT: "1" });
  });
  afterAll(() => runtime.stop());

  test.each(refused)("with %s is refused and closed", async (_row, bytes, status) => {
    const answer = await runtime.raw(bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*connection: close\\r\\n`, "s"));
  });

  test("answers pipelined requests in order", async () => {
    const body = `${post("Content-Length: 3")}abc`;
    const chunked = `${post("Transfer-Encoding: chunked")}2;x=y\r\nab\r\n3\r\ncde\r\n0\r\nTrailer: x\r\n\r\n`;
    const answer = await runtime.raw(get() + body + chunked, get(), get("Connection: close"));
    const bodies = [...answer.matchAll(/\r\n\r\n(\w+ \/ \d)/g)].map((match) => match[1]);
    expect(bodies).toEqual(["GET / 0", "POST / 3", "POST / 5", "GET / 0", "GET / 0"]);
  });

  test("takes a request in single bytes", async () => {
    const socket = runtime.connect();
    const bytes = `\r\n${post("Transfer-Encoding: chunked", "Connection: close")}3\r\nabc\r\n0\r\n\r\n`;
    for (const byte of bytes) {
      socket.write(byte);
      await new Promise(setImmediate);
    }
    let answer = "";
    for await (const data of socket) answer += String(data);
    expect(answer).toContain("POST / 3");
  });

  test("says continue to a client that asks before it sends", async () => {
    const socket = runtime.connect();
    socket.write(post("Content-Length: 2", "Expect: 100-continue", "Connection: close"));
    const [first] = await once(socket, "data");
    expect(String(first)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    socket.write("ab");
    const [second] = await once(socket, "data");
    expect(String(second)).toContain("POST / 2");
  });

  test("of HTTP/1.0 is closed, or kept if asked, and never sees chunks", async () => {
    const closed = await runtime.raw("GET / HTTP/1.0\r\n\r\n");
    expect(closed).toMatch(/connection: close\r\n.*GET \/ 0$/s);
    const kept = await runtime.raw(
      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /stream HTTP/1.0\r\n\r\n",
    );
    expect(kept).toMatch(/connection: keep-alive\r\n.*GET \/ 0HTTP/s);
    expect(kept).not.toContain("transfer-encoding");
    expect(kept.endsWith("x".repeat(3000))).toBe(true);
  });

  test("closed by the client on one side still gets its answer", async () => {
    const socket = runtime.connect();
    socket.end(get());
    let answer = "";
    for await (const data of socket) answer += String(data);
    expect(answer).toContain("GET / 0");
  });

  test("closed by the client on one side gets all answers to what it has sent", async () => {
    const socket = runtime.connect();
    socket.end(get() + `${post("Content-Length: 3")}abc` + get());
    let answer = "";
    for await (const data of socket) answer += String(data);
    expect(answer.match(/(GET|POST) \/ \d/g)).toEqual(["GET / 0", "POST / 3", "GET / 0"]);
  });

  test("accepts an absolute target and repeated fields", async () => {
    const answer = await runtime.raw(
      crlf("GET http://a/path?x HTTP/1.1", "Host: a", "A: 1", "A: 2", "Connection: close", "", ""),
    );
    expect(answer).toContain("GET /path 0");
  });

  test("reset in the middle of anything harms no other", async () => {
    for (let round = 0; round < 60; round++) {
      const socket = runtime.connect().on("error", () => undefined);
      await once(socket, "connect");
      socket.write(`${get()}${get()}no request\r\n\r\n`);
      if (round % 3) await pause(round % 3);
      socket.resetAndDestroy();
    }
    expect((await runtime.call("/")).body).toBe("GET / 0");
    expect(runtime.output).not.toContain("Traceback");
  });

  test("has its own /healthz, /metrics and /favicon.ico", async () => {
    expect(await runtime.call("/healthz")).toMatchObject({ status: 200, body: "OK" });
    expect((await runtime.call("/metrics")).body).toContain("# TYPE function_calls_total counter");
    expect((await runtime.call("/favicon.ico")).status).toBe(204);
  });

  test.skipIf(code !== source)(
    "that sends its head too slowly is told so",
    { timeout: 30_000 },
    async () => {
      const socket = runtime.connect();
      let answer = "";
      socket.on("data", (data) => (answer += String(data)));
      const ended = once(socket, "close");
      socket.write("GET / HTTP/1.1\r\n");
      const slow = setInterval(() => socket.write("A: b\r\n"), 500);
      await ended.finally(() => clearInterval(slow));
      expect(answer).toMatch(/^HTTP\/1\.1 408 /);
      await pause(0);
    },
  );
});
