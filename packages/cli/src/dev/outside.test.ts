/** What pages and programs on the user's machine can do to `spry dev`: its ports are open to all of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { startCollector } from "./events.ts";
import { AllowedHosts } from "./allowed-hosts.ts";
import { createFrontServer } from "./front-server.ts";
import { openNeighbours } from "./neighbours.ts";
import { Session } from "./session.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanups.splice(0).reverse()) await step();
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The response's status and body; `fetch` does not let a test choose the host. */
function ask(port: number, headers: Record<string, string>, target = "/") {
  return new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: target, headers };
    const sent = request(options, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode, body }));
    });
    sent.once("error", reject).end();
  });
}

/** A front whose Function cannot be loaded: it answers 500 to every caller that it permits. */
async function front(...allowed: string[]) {
  const none = () => {};
  const events = { onOutput: none, onReady: none, onFailure: none, onCrash: none };
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-outside-"));
  const session = new Session(events, scratch);
  session.fail({ summary: "reached", details: "" });
  cleanups.push(() => session.close());
  return listening(createFrontServer(session, none, new AllowedHosts(allowed)));
}

const upgradeStatus = (port: number, host: string, origin: string | undefined) =>
  new Promise<string | undefined>((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      const fields = [`Host: ${host}`, "Connection: Upgrade", "Upgrade: websocket"];
      if (origin !== undefined) fields.push(`Origin: ${origin}`);
      socket.write(`GET / HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`);
    });
    socket.once("error", reject);
    socket.once("data", (chunk) => {
      resolve(/^HTTP\/1\.1 (\d+)/.exec(chunk.toString())?.[1]);
      socket.destroy();
    });
  });

describe("the Function's port", () => {
  test.each([
    ["localhost:3000", 500],
    ["LOCALHOST", 500],
    ["localhost.", 500],
    ["hello.default.localhost:3000", 500],
    ["127.0.0.1:3000", 500],
    ["[::1]:3000", 500],
    ["shop.example:3000", 500],
    ["attacker.example:3000", 403],
    ["localhost.attacker.example", 403],
    ["notlocalhost", 403],
    ["127.0.0.1.attacker.example", 403],
    ["a.shop.example", 403],
    ["attacker.example@localhost", 403],
    [":3000", 403],
  ])("gives a request for %j the status %d", async (host, status) => {
    const port = await front("shop.example");
    expect((await ask(port, { host })).status).toBe(status);
    expect(await upgradeStatus(port, host, undefined)).toBe(String(status));
  });

  test("names the way out", async () => {
    expect((await ask(await front(), { host: "shop.example:1" })).body).toBe(
      "spry dev does not answer requests for the host shop.example: start it with --allow-host shop.example if they are yours\n",
    );
  });

  test.each([
    ["http://localhost:5173", "500"],
    ["https://shop.example", "500"],
    ["https://attacker.example", "403"],
    ["null", "403"],
  ])("gives a WebSocket of a page of %s the status %s", async (origin, status) => {
    const port = await front("shop.example");
    expect(await upgradeStatus(port, "localhost", origin)).toBe(status);
  });

  test.each(["", "a b", "http://shop.example", "a/b"])("refuses --allow-host %j", (name) =>
    expect(() => new AllowedHosts([name])).toThrow("is not a valid host name"),
  );
});

describe("the neighbours' port", () => {
  test.each([
    ["stock", 200],
    ["stock:80", 200],
    ["stock.default", 200],
    ["stock.default.svc", 200],
    ["stock.default.svc.cluster.local:80", 200],
    ["stock.default.svc.cluster.local.", 200],
    ["prices.shop", 200],
    ["prices", 503],
    ["stock.default.attacker.example", 503],
    ["stock.default.svc.attacker.example", 503],
    ["stock.default.svc.cluster.local.attacker.example", 503],
    ["stock.attacker.example", 503],
  ])("gives a request for %s the status %d", async (host, status) => {
    const target = await listening(createServer((_request, response) => response.end("stock")));
    const scratch = mkdtempSync(path.join(tmpdir(), "spry-neighbours-"));
    cleanups.push(() => rmSync(scratch, { recursive: true }));
    const url = `http://127.0.0.1:${target}`;
    const neighbours = await openNeighbours({
      named: [`stock=${url}`, `prices.shop=${url}`],
      namespace: "default",
      scratch,
      client: undefined,
      gateway: undefined,
    });
    cleanups.push(() => neighbours.close());
    expect((await ask(neighbours.port, { host })).status).toBe(status);
  });
});

describe("the collector of events", () => {
  async function collector() {
    const lines: string[] = [];
    const started = await startCollector((line) => lines.push(line));
    cleanups.push(() => started.close());
    return { url: started.url, lines };
  }

  test("is found only by who knows its address", async () => {
    const { url, lines } = await collector();
    const post = async (address: URL | string) =>
      (await fetch(address, { method: "POST", body: "x" })).status;
    expect(await post(new URL("/publish", url))).toBe(404);
    expect(lines).toEqual([]);
    expect(await post(url)).toBe(204);
    expect((await collector()).url.split("/")[3]).not.toBe(url.split("/")[3]);
  });

  test("prints no control characters", async () => {
    const { url, lines } = await collector();
    await fetch(url, {
      method: "POST",
      headers: { "ce-type": "a\u009b2Jb", "ce-source": "shop" },
      body: "one\u001b]52;c;AAAA\u0007\r\ntwo\u202e",
    });
    const event = { type: "\u001b[2J", source: "s\n✔ ready", data: "\u007f" };
    const headers = { "content-type": "application/cloudevents+json" };
    await fetch(url, { method: "POST", headers, body: JSON.stringify(event) });
    expect(lines).toEqual([
      "published a\uFFFD2Jb from shop: one\uFFFD]52;c;AAAA\uFFFD\uFFFD\uFFFDtwo\uFFFD",
      'published \uFFFD[2J from s\uFFFD✔ ready: "\uFFFD"',
    ]);
  });
});
