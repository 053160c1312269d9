/** HTTPS through the front door: which certificate, whose hosts, what changes while connections are open. */
import { request as httpsRequest } from "node:https";
import { connect as connectTcp } from "node:net";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { certificateFor } from "@spry/test-kit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Answered, bodyOf, type TestPod } from "./testing/bench.ts";
import {
  exposure,
  type ExposureBench,
  plain,
  secured,
  startExposureBench,
} from "./testing/exposure.ts";

let bench: ExposureBench;
let pod: TestPod;
const host = "dice.example.com";
const hosts = ["*.example.com"];

beforeEach(async () => {
  bench = await startExposureBench({
    https: { port: 0 },
    exposure: { ...exposure, handshakeTimeoutMs: 2_000 },
  });
  pod = await bench.pod((_, response) => response.end("in"));
  await bench.service();
  await bench.endpoints([pod]);
  await bench.gatewayOf("kyma-gateway", [plain(hosts), secured(hosts, "web")]);
  await bench.apiRule("dice", {});
  await bench.certificates({ "kyma-system.web": await certificateFor(host) });
});
afterEach(() => bench.close());

const port = () => bench.gateway.httpsPort ?? 0;

/** A connection whose handshake is done. */
function opened(servername: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const to = { host: "127.0.0.1", port: port(), rejectUnauthorized: false };
    const socket = connect({ ...to, servername, ...options });
    socket.once("secureConnect", () => resolve(socket)).once("error", reject);
  });
}

function call(options: { host?: string; servername?: string; headers?: object } = {}) {
  const { host: name = host, servername = name, headers } = options;
  return new Promise<Answered>((resolve, reject) => {
    const request = httpsRequest({
      host: "127.0.0.1",
      port: port(),
      servername,
      agent: false,
      rejectUnauthorized: false,
      headers: { host: name, ...headers },
    });
    request.once("error", reject);
    request.once("response", (response) => {
      const { statusCode: status = 0 } = response;
      void bodyOf(response).then((body) =>
        resolve({ status, headers: response.headers, body: body.toString() }),
      );
    });
    request.end();
  });
}

test("a host is served over HTTPS, and its Service knows it", async () => {
  expect(await call()).toMatchObject({ status: 200, body: "in" });
  expect(pod.seen[0]?.headers).toMatchObject({
    "x-forwarded-proto": "https",
    forwarded: `for=127.0.0.1;host="${host}";proto=https`,
  });
});

describe("over HTTPS there is nothing", () => {
  test.each([
    ["of a Function's own host", { host: "hello.default.localhost", servername: host }, 404],
    ["of a host inside the cluster", { host: "hello.default.svc", servername: host }, 404],
    ["of a host that the connection is not for", { servername: "other.example.com" }, 421],
  ])("%s", async (_, options, status) => {
    await bench.apiRule("other", {});
    expect(await call(options)).toMatchObject({ status });
    expect(pod.seen).toHaveLength(0);
  });

  test.each([
    ["a host that is not exposed", "none.example.com", {}],
    ["no host", "", {}],
    ["TLS 1.1", host, { maxVersion: "TLSv1.1", minVersion: "TLSv1.1" } as const],
    [
      "a cipher without forward secrecy",
      host,
      { maxVersion: "TLSv1.2", ciphers: "AES128-SHA256" } as const,
    ],
  ])("for %s: the handshake fails", async (_, servername, options) => {
    await expect(opened(servername, options)).rejects.toThrow(/alert|reset|disconnected|protocol/i);
  });
});

test("where strangers come, Functions have no hosts of their own over plain HTTP either", async () => {
  const open = await startExposureBench({ exposure: { ...exposure, functionHosts: false } });
  await open.service();
  await open.endpoints([pod]);
  for (const name of ["hello.default.localhost", "hello.default.svc.cluster.local"])
    expect(await open.call({ host: name })).toMatchObject({ status: 404 });
  await open.apiRule("dice", {});
  expect(await open.call({ host })).toMatchObject({ status: 200 });
  await open.close();
});

test("TLS 1.2 is enough", async () => {
  const socket = await opened(host, { maxVersion: "TLSv1.2" });
  expect(socket.getProtocol()).toBe("TLSv1.2");
  socket.destroy();
});

test("a renewed certificate counts at once, and connections that are open go on", async () => {
  const socket = await opened(host);
  const before = socket.getPeerCertificate().fingerprint256;
  await bench.certificates({ "kyma-system.web": await certificateFor(host) });
  const next = await opened(host);
  expect(next.getPeerCertificate().fingerprint256).not.toBe(before);
  next.destroy();
  socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  expect((await bodyOf(socket)).toString()).toMatch(/^HTTP\/1\.1 200/);
});

test("half a certificate refuses its hosts, and no others", async () => {
  const [web, other] = await Promise.all([certificateFor(host), certificateFor("a.example.org")]);
  await bench.gatewayOf("other", [secured(["*.example.org"], "other")]);
  await bench.apiRule("a", { gateway: "kyma-system/other" });
  await bench.certificates({
    "kyma-system.web": { crt: web.crt, key: other.key },
    "kyma-system.other": other,
  });
  await expect(opened(host)).rejects.toThrow();
  expect(await call({ host: "a.example.org" })).toMatchObject({ status: 200 });
});

test("a host of the platform's own certificates gets the one that names it", async () => {
  await bench.gatewayOf("kyma-gateway", [secured(hosts)]);
  await bench.certificates({ "own-3": await certificateFor(host) });
  expect(await call()).toMatchObject({ status: 200 });
});

test("a handshake that is never finished ends after a time, and others are not affected", async () => {
  const slow = connectTcp(port(), "127.0.0.1");
  const ended = new Promise<void>((resolve) => slow.once("close", () => resolve()));
  slow.on("error", () => {});
  // The head of a ClientHello that never comes.
  slow.write(Buffer.from([0x16, 3, 1, 2, 0, 1]));
  expect(await call()).toMatchObject({ status: 200 });
  await ended;
});

test("a port that is taken is replaced where another one will do", async () => {
  const second = await startExposureBench({ https: { port: port(), orFree: true } });
  expect(second.gateway.httpsPort).not.toBe(port());
  await second.close();
});
