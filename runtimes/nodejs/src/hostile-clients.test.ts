/** What nobody should send: each gets its answer, or is hung up on, and others notice nothing. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

const host = "host: x\r\n";
const get = (headers: string) => `GET / HTTP/1.1\r\n${host}${headers}\r\n`;
const post = (headers: string, body: string) => `POST / HTTP/1.1\r\n${host}${headers}\r\n${body}`;
const chunked = "transfer-encoding: chunked\r\n";
const after = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";

/** `status` of the one answer that there is. */
const rows: { name: string; text: string; status: number }[] = [
  { name: "no HTTP", text: "hello\r\n\r\n", status: 400 },
  { name: "HTTP/2's preface", text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", status: 400 },
  { name: "an unknown method", text: "BREW / HTTP/1.1\r\nhost: x\r\n\r\n", status: 400 },
  { name: "no Host", text: "GET / HTTP/1.1\r\n\r\n", status: 400 },
  { name: "a space in a header's name", text: get("a b: c\r\n"), status: 400 },
  { name: "a line break in a header", text: get("a: b\rc: d\r\n"), status: 400 },
  {
    name: "a length and chunks",
    text: post(`content-length: 5\r\n${chunked}`, `0\r\n\r\n${after}`),
    status: 400,
  },
  {
    name: "chunks and a length",
    text: post(`${chunked}content-length: 5\r\n`, `0\r\n\r\n${after}`),
    status: 400,
  },
  {
    name: "two lengths",
    text: post("content-length: 5\r\ncontent-length: 6\r\n", "hello"),
    status: 400,
  },
  { name: "a length that is negative", text: post("content-length: -1\r\n", ""), status: 400 },
  { name: "a length that is none", text: post("content-length: 5x\r\n", "hello"), status: 400 },
  {
    name: "chunks not last",
    text: post("transfer-encoding: chunked, gzip\r\n", `0\r\n\r\n${after}`),
    status: 400,
  },
  {
    name: "something like chunks",
    text: post("transfer-encoding: xchunked\r\n", after),
    status: 400,
  },
  { name: "a chunk's size that is none", text: post(chunked, "zz\r\nhello\r\n"), status: 400 },
  {
    name: "a chunk larger than it says",
    text: post(chunked, "2\r\nhello\r\n0\r\n\r\n"),
    status: 400,
  },
  {
    name: "a chunk's endless extension",
    text: post(chunked, `5;${"a".repeat(20_000)}\r\nhello\r\n`),
    status: 413,
  },
  { name: "a head too large", text: get(`a: ${"x".repeat(40_000)}\r\n`), status: 431 },
  { name: "too many headers", text: get("a: b\r\n".repeat(10_000)), status: 431 },
  {
    name: "a path too long",
    text: `GET /${"x".repeat(40_000)} HTTP/1.1\r\n${host}\r\n`,
    status: 431,
  },
  {
    name: "a length too large, without the body",
    text: post("content-length: 99999999999\r\n", ""),
    status: 413,
  },
  {
    name: "a length beyond numbers",
    text: post(`content-length: ${"9".repeat(40)}\r\n`, ""),
    status: 400,
  },
];

const hello = `exports.main = (event) => event.extensions.request.path;`;

describe("a client that sends", () => {
  test("what it should not is answered, once", async () => {
    const { url } = await startFunction(hello);
    const seen: Record<string, string[]> = {};
    for (const { name, text } of rows) {
      const answer = await exchange(url, text);
      seen[name] = answer.match(/^HTTP\/1\.1 \d{3}/gm) ?? [];
      expect(answer).not.toContain("smuggled");
    }
    const expected = rows.map(({ name, status }) => [name, [`HTTP/1.1 ${status}`]]);
    expect(seen).toEqual(Object.fromEntries(expected));
    expect((await send(`${url}/well`)).body).toBe("/well");
  });

  test.each(["HEAD", "GET"])(
    "a body with %s to a path that is not the Function's is read before it is answered",
    async (method) => {
      const { url } = await startFunction(hello);
      for (const path of ["/healthz", "/metrics", "/favicon.ico"]) {
        const { hostname, port } = new URL(url);
        const socket = connect(Number(port), hostname);
        let answer = "";
        const answered = once(socket, "data").then(() => "answered");
        socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
        const ended = once(socket, "close");
        const body = "x".repeat(100_000);
        socket.write(
          `${method} ${path} HTTP/1.1\r\n${host}connection: close\r\ncontent-length: 200000\r\n\r\n${body}`,
        );
        // With an answer before the rest, the connection would be closed with data unread: whoever still writes may lose it.
        const silence = new Promise((resolve) => setTimeout(resolve, 100, "silence"));
        expect(await Promise.race([answered, silence])).toBe("silence");
        socket.end(body);
        await ended;
        expect(answer).toMatch(/^HTTP\/1\.1 20/);
      }
    },
  );

  test("a whole URL, as to a proxy, means its path", async () => {
    const { url } = await startFunction(hello);
    const ask = async (target: string) =>
      (await exchange(url, `GET ${target} HTTP/1.1\r\n${host}connection: close\r\n\r\n`)).split(
        "\r\n\r\n",
      )[1];
    expect(await ask("http://x/a/b?c=/d")).toBe("/a/b");
    expect(await ask("HTTP://x?c=/d")).toBe("/");
    expect(await ask("http://x/healthz")).toBe("OK");
    expect(await ask("//x/a")).toBe("//x/a");
  });

  test("a Host that is none cannot reach the path", async () => {
    const { url } = await startFunction(
      `export default { fetch: ({ url }) => new Response(new URL(url).pathname) };`,
    );
    for (const name of ["x/admin?", "x/admin#", "x\\admin#", "a@b", "[", "x:99999", ""])
      expect(
        await exchange(url, `GET /public HTTP/1.1\r\nhost: ${name}\r\nconnection: close\r\n\r\n`),
      ).toMatch(/\r\n\r\n\/public$/);
  });

  test("nothing yet, but asks, is told at once of a body that is too large", async () => {
    const { url } = await startFunction(hello);
    const expecting = "expect: 100-continue\r\n";
    expect(await exchange(url, post(`${expecting}content-length: 2000000\r\n`, ""))).toMatch(
      /^HTTP\/1\.1 413 [^]*connection: close/i,
    );
    expect(await exchange(url, post(`${expecting}content-length: 2\r\n`, "ab"))).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /,
    );
  });

  test("its head byte by byte keeps nobody else from an answer", async () => {
    const { url } = await startFunction(hello);
    const slow = Array.from({ length: 300 }, () => open(url, "GET / HTTP/1.1\r\nhost:"));
    await Promise.all(slow.map((socket) => once(socket, "connect")));
    expect((await send(`${url}/well`)).body).toBe("/well");
    for (const socket of slow) socket.destroy();
  });

  test("its body byte by byte gets 408, when its time is over", async () => {
    const { url } = await startFunction(hello, { FUNC_TIMEOUT: "0.3" });
    expect(await exchange(url, post("content-length: 10\r\n", "hel"))).toMatch(/^HTTP\/1\.1 408 /);
  });

  test("requests in a row gets all answers in that order", async () => {
    const { url } = await startFunction(hello);
    const text = [1, 2, 3].map((n) => `GET /${n} HTTP/1.1\r\n${host}\r\n`).join("");
    const answer = await exchange(url, text, /\/3$/);
    expect(answer.match(/(?<=\r\n\r\n)\/\d/g)).toEqual(["/1", "/2", "/3"]);
  });

  test("half a body and goes leaves nothing behind", async () => {
    const { url, stderr } = await startFunction(hello);
    const socket = open(url, post("content-length: 10\r\n", "hel"));
    await once(socket, "connect");
    socket.destroy();
    const calls = async () => /calls_total (\d+)/.exec((await send(`${url}/metrics`)).body)?.[1];
    expect(await calls()).toBe("0");
    expect(stderr()).toBe("");
  });
});

describe("a handler that", () => {
  test("ends the process is named in the log", async () => {
    const fn = await startFunction(`exports.main = () => process.exit(3);`);
    await expect(send(fn.url)).rejects.toThrow(/hang up|ECONNRESET/);
    expect(await fn.exited).toBe(3);
    expect(fn.stderr()).toMatch(/process\.exit\(3\) was called.*\n\s+at .*[^]*handler\.js:1:/);
  });

  test("ends the process is what the container says last, whatever another has written before", async () => {
    const words = join(mkdtempSync(join(tmpdir(), "spry-words-")), "termination-log");
    writeFileSync(words, "");
    onTestFinished(() => rmSync(dirname(words), { recursive: true }));
    const fn = await startFunction(
      `exports.main = (event) => {
         if (event.extensions.request.path === "/exit") process.exit(3);
         throw new Error("user bug");
       };`,
      { SPRY_TERMINATION_LOG: words },
    );
    expect((await send(fn.url, { headers: { "x-request-id": "r-77" } })).status).toBe(500);
    const headers = { "x-request-id": "r-78" };
    await expect(send(`${fn.url}/exit`, { headers })).rejects.toThrow(/hang up|ECONNRESET/);
    await fn.exited;
    expect(readFileSync(words, "utf8")).toMatch(
      /^the Function ended its process: Error: process\.exit\(3\) was called; this also ended request r-78 \(GET \/exit\)\n\s+at .*handler\.js:2:/,
    );
  });
});

function open(url: string, text: string): Socket {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  socket.write(text);
  return socket;
}

/** All that comes back, until the other side hangs up, has been quiet for a moment or is done. */
async function exchange(url: string, text: string, done?: RegExp): Promise<string> {
  const socket = open(url, text);
  let answer = "";
  socket.on("data", (chunk: Buffer) => {
    answer += chunk.toString();
    if (done?.test(answer)) socket.destroy();
    else socket.setTimeout(500, () => socket.destroy());
  });
  // Closed with bytes of ours unread it is reset, after the answer: which of both is seen is chance.
  socket.on("error", () => {});
  await new Promise((resolve) => socket.once("close", resolve));
  return answer;
}
