import * as http from "node:http";
import { createServer } from "node:net";
import { once } from "node:events";
import { type Logger, silentLogger } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { freePort } from "@spry/test-kit";
import { type Bench, startBench } from "../testing/bench.ts";

const address = `127.96.${Math.floor(Math.random() * 250)}.${1 + Math.floor(Math.random() * 250)}`;
const warnings: object[] = [];
const log: Logger = { ...silentLogger, warn: (fields) => warnings.push(fields), child: () => log };

let bench: Bench;
let port: number;
beforeEach(async () => {
  port = await freePort();
  warnings.length = 0;
  bench = await startBench({ withKnative: true, inside: { own: ["127.96.0.0/12"] }, log });
  const pod = await bench.pod((request, response) => response.end(request.headers.host));
  await bench.knative.revision("a");
  await bench.revisionPods("a", [pod]);
  await bench.knative.route("hello", [{ revisionName: "a", percent: 100, tag: "t" }], {
    "networking.knative.dev/visibility": "cluster-local",
  });
  await bench.heard();
});
afterEach(() => bench.close());

/** A call to the address that the slice names. */
async function call(host: string, agent: http.Agent | false = false) {
  const request = http.get({ host: address, port, headers: { host }, agent });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  let body = "";
  for await (const chunk of response) body += String(chunk);
  return { status: response.statusCode, body, connection: response.headers.connection };
}

test.each([
  "hello",
  "hello.default",
  "hello.default.svc.cluster.local",
  "10.96.0.17",
  "other.elsewhere.localhost",
])(
  "the address that is dialled says which Service is meant, whatever Host is: %s",
  async (host) => {
    await bench.knative.gatewaySlice("hello", address, port);
    await expect
      .poll(() => call(host).catch(() => undefined))
      .toMatchObject({ status: 200, body: host });
  },
);

test("a tag's Service has an address as well", async () => {
  await bench.knative.gatewaySlice("t-hello", address, port);
  await expect
    .poll(() => call("t-hello").catch(() => undefined))
    .toMatchObject({ body: "t-hello" });
});

test("requests for a Revision at zero wait, and wake it", async () => {
  await bench.revisionPods("a", []);
  await bench.knative.gatewaySlice("hello", address, port);
  await bench.heard();
  const pending = call("hello");
  await bench.heard();
  await bench.revisionPods("a", [await bench.pod((_, response) => response.end("awake"))]);
  expect((await pending).body).toBe("awake");
});

test("addresses of others are left alone, and slices of others as well", async () => {
  await bench.knative.gatewaySlice("hello", "127.0.99.1", port);
  await bench.heard();
  await expect(fetch(`http://127.0.99.1:${port}/`)).rejects.toThrow();
});

test("when its slice is gone, it goes on for a while with the last response of each connection", async () => {
  await bench.knative.gatewaySlice("hello", address, port);
  const agent = new http.Agent({ keepAlive: true });
  await expect
    .poll(() => call("hello", agent).catch(() => undefined))
    .toMatchObject({
      status: 200,
      connection: "keep-alive",
    });
  await bench.knative.gatewaySlice("hello", undefined);
  await bench.heard();
  expect(await call("hello", agent)).toMatchObject({ status: 200, connection: "close" });
  // Back before it was closed.
  await bench.knative.gatewaySlice("hello", address, port);
  await bench.heard();
  expect(await call("hello", agent)).toMatchObject({ status: 200, connection: "keep-alive" });
  agent.destroy();
});

test("an address that is taken is logged and tried again", async () => {
  const other = createServer().listen(port, address);
  await once(other, "listening");
  await bench.knative.gatewaySlice("hello", address, port);
  await expect
    .poll(() => warnings)
    .toContainEqual(expect.objectContaining({ host: address, port, service: "default/hello" }));
  other.close();
  await expect.poll(() => call("hello").catch(() => undefined)).toMatchObject({ status: 200 });
});

test("a gateway that leaves serves until no slice names it", async () => {
  await bench.close();
  bench = await startBench({
    withKnative: true,
    inside: { own: ["127.96.0.0/12"] },
    leaveMs: 1,
  });
  await bench.knative.revision("a");
  await bench.revisionPods("a", [await bench.pod((_, response) => response.end("still"))]);
  await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
  await bench.knative.gatewaySlice("hello", address, port);
  await expect.poll(() => call("hello").catch(() => undefined)).toMatchObject({ status: 200 });
  const closed = bench.gateway.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await call("hello")).toMatchObject({ status: 200, connection: "close" });
  await bench.knative.gatewaySlice("hello", undefined);
  await closed;
  await expect(call("hello")).rejects.toThrow("ECONNREFUSED");
});

test("a request in progress is answered when the gateway closes", async () => {
  const held = Promise.withResolvers<http.ServerResponse>();
  await bench.revisionPods("a", [await bench.pod((_, response) => held.resolve(response))]);
  await bench.knative.gatewaySlice("hello", address, port);
  await bench.heard();
  const pending = call("hello");
  const response = await held.promise;
  const closed = bench.gateway.close();
  setTimeout(() => response.end("late"), 50);
  expect((await pending).body).toBe("late");
  await closed;
});
