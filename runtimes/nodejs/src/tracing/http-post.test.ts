import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { HttpPoster } from "./http-post.ts";

const message = { contentType: "text/plain", body: [Buffer.from("body")], timeoutMs: 10_000 };

const post = (url: URL, { ...what } = message) => new HttpPoster(url).post(what);

/** Answers with these bytes when a request has come, and closes unless it is to be kept. */
async function startServer(answer: string, { keep = false } = {}): Promise<URL> {
  const server = createServer((socket) => {
    socket.once("data", () => {
      socket.write(answer);
      if (!keep) socket.end();
    });
    socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

test.each([
  ["200", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", {}],
  ["202 of HTTP/1.0", "HTTP/1.0 202 Accepted\r\n\r\n", {}],
  ["an interim answer first", "HTTP/1.1 100 Continue\r\na: b\r\n\r\nHTTP/1.1 204 -\r\n\r\n", {}],
  ["a connection that stays open", "HTTP/1.1 200 OK\r\n\r\n", { keep: true }],
])("%s is success", async (_name, answer, how) => {
  await expect(post(await startServer(answer, how), message)).resolves.toBeUndefined();
});

test.each([
  ["another status", "HTTP/1.1 503 Busy\r\n\r\n", {}, "the server responded with status 503"],
  [
    "a redirection",
    "HTTP/1.1 301 -\r\nlocation: /\r\n\r\n",
    {},
    "the server responded with status 301",
  ],
  ["nothing", "", {}, "the server closed the connection without a response"],
  ["what is no HTTP", "220 smtp\r\n", {}, "the server closed the connection without a response"],
])("%s is failure", async (_name, answer, how, error) => {
  await expect(post(await startServer(answer, how), message)).rejects.toThrow(error);
});

test("silence is failure, in time", async () => {
  const url = await startServer("", { keep: true });
  await expect(post(url, { ...message, timeoutMs: 200 })).rejects.toThrow(
    "the server did not respond in time",
  );
});

test("the request is whole: path, host, credentials, and a body of many packets", async () => {
  const requests: unknown[] = [];
  const server = createHttpServer((request, response) => {
    const { method, url, headers } = request;
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      requests.push({ method, url, headers, body });
      response.end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const body = [Buffer.alloc(500_000, "x"), Buffer.alloc(500_000, "y")];
  await post(new URL(`http://me:p%40ss@${host}/v1/traces?a=b`), { ...message, body });
  expect(requests).toEqual([
    {
      method: "POST",
      url: "/v1/traces?a=b",
      headers: {
        host,
        "content-type": "text/plain",
        "content-length": "1000000",
        authorization: `Basic ${Buffer.from("me:p@ss").toString("base64")}`,
      },
      body: body.join(""),
    },
  ]);
});

describe("connections", () => {
  /** Counts them, and lets each answer so many requests. */
  async function startCountingServer(requestsEach: number, answer: string) {
    const seen = { connections: 0, requests: 0 };
    const server = createServer((socket) => {
      seen.connections++;
      let left = requestsEach;
      socket.on("error", () => {});
      socket.on("data", (chunk: Buffer) => {
        // The head and the body of one may come by themselves.
        if (!chunk.toString().endsWith("body")) return;
        if (left-- === 0) return void socket.destroy();
        seen.requests++;
        socket.write(answer);
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    return { seen, poster: new HttpPoster(new URL(`http://127.0.0.1:${port}/`)) };
  }

  test.each([
    ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1],
    ["no content", "HTTP/1.1 204 -\r\n\r\n", 1],
    ["failure", "HTTP/1.1 503 -\r\ncontent-length: 0\r\n\r\n", 1],
    ["more than its length", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nok", 3],
    ["a last answer", "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", 3],
  ])("after %s", async (_name, answer, connections) => {
    const { seen, poster } = await startCountingServer(9, answer);
    for (let n = 0; n < 3; n++) await poster.post(message).catch(() => {});
    expect(seen).toEqual({ connections, requests: 3 });
  });

  test("that the server closes are made anew", async () => {
    const answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    const { seen, poster } = await startCountingServer(1, answer);
    for (let n = 0; n < 3; n++) await poster.post(message);
    expect(seen).toEqual({ connections: 3, requests: 3 });
  });

  test("a new one that is closed is failure", async () => {
    const { seen, poster } = await startCountingServer(0, "");
    await expect(poster.post(message)).rejects.toThrow(/closed the connection|ECONNRESET/);
    expect(seen.connections).toBe(1);
  });
});

test("by https the server must prove its name", async () => {
  const directory = mkdtempSync(path.join(tmpdir(), "http-post-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const [key, cert] = ["key", "cert"].map((name) => path.join(directory, name)) as [string, string];
  const args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=x";
  const names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert];
  execFileSync("openssl", [...args.split(" "), ...names], { stdio: "ignore" });
  const own = { key: readFileSync(key), cert: readFileSync(cert) };
  const server = createHttpsServer(own, (_request, response) => response.end()).listen(0);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const url = (host: string) => new URL(`https://${host}:${port}/`);
  await expect(post(url("localhost"), message)).rejects.toThrow("self-signed certificate");
  const before = getCACertificates();
  onTestFinished(() => setDefaultCACertificates(before));
  setDefaultCACertificates([own.cert.toString()]);
  await expect(post(url("localhost"), message)).resolves.toBeUndefined();
  await expect(post(url("127.0.0.1"), message)).rejects.toThrow(/IP: 127\.0\.0\.1 is not in the/);
});
