/** Functions by a path of the gateway's own host: a Function that is closed at its own host is closed there, too, however the path is written. */
import { resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type TestPod } from "./testing/bench.ts";
import { type ExposureBench, startExposureBench } from "./testing/exposure.ts";

let bench: ExposureBench;
/** Of the Function that is closed, and of another one that is open. */
let closed: TestPod;
let open: TestPod;
const accepted: string[] = [];

beforeEach(async () => {
  accepted.length = 0;
  const calls = {
    accept: async ({ key, response }: { key: string; response: { end(): unknown } }) => {
      accepted.push(key);
      response.end();
    },
    report: async () => {},
  };
  bench = await startExposureBench({ calls });
  [closed, open] = (await Promise.all(
    ["closed", "open"].map((text) => bench.pod((_, response) => response.end(text))),
  )) as [TestPod, TestPod];
  await bench.service("hello");
  await bench.endpoints([closed]);
  await bench.service("other");
  await bench.endpoints([open], [], "other");
});
afterEach(() => bench.close());

const authentications = [{ issuer: "https://i.example", jwksUri: "https://i.example/keys" }];
const ways: [string, () => Promise<unknown>][] = [
  [
    "whose APIRule requires tokens",
    () =>
      bench.apiRule("dice", {
        rules: [{ path: "/*", methods: ["GET"], jwt: { authentications } }],
      }),
  ],
  [
    "that is cluster-local",
    async () => {
      const target = { namespace: "default", name: "hello" };
      const labels = { "networking.knative.dev/visibility": "cluster-local" };
      await bench.client.patch(resources.services, target, { metadata: { labels } });
      await bench.heard();
    },
  ],
];

describe.each(ways)("a Function %s", (_, close) => {
  beforeEach(close);

  test.each([
    "/fn/default/hello/",
    "/fn/default/hello",
    "/fn/default/hello/a?b=/fn/default/other/",
    "//fn/default/hello/",
    "/fn//default/hello/",
    "/fn/default//hello/",
    "/fn/default%2fhello/",
    "/fn/default/%68ello/",
    "/fn/default/hello%2f",
    "/fn/default/HELLO/",
    "/fn/default/./hello/",
    "/fn/default/other/../hello/",
    "/fn/default/other/%2e%2e/hello/",
    "/fn/default/other/..%2fhello/",
    "/fn/default/other/..%3b/hello/",
    "/fn/default/other/..%09/hello/",
    "/fn/default/other%0d%0a/../hello/",
    "/fn/default/other//../../hello/",
    "/fn/default/other\\..\\hello/",
    "/fn/default/other/fn/default/hello/",
    "/./fn/default/hello/",
    "/%66n/default/hello/",
    "/async/default/hello/",
    "/async/default/hello",
    "/async-function/hello/",
    "/async-function/hello.default/a",
    "/async/default/other/../hello/",
  ])("is not reached by %s", async (path) => {
    for (const headers of [
      {},
      { prefer: "respond-async" },
      { "x-forwarded-prefix": "/fn/default/hello" },
    ])
      for (const host of [`localhost:${bench.port}`, "127.0.0.1", "[::1]", "LOCALHOST."])
        await bench.call({ host, path, headers });
    expect(closed.seen).toEqual([]);
    expect(accepted).not.toContain("default/hello");
  });

  test("is not reached by the absolute form of its URL, nor by an upgrade", async () => {
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for (const [target, host, more] of [
      ["http://localhost/fn/default/hello/", "other.default.localhost", ""],
      ["http://other.default.localhost/fn/default/hello/", "localhost", ""],
      ["/fn/default/hello/", "localhost", upgrade],
    ])
      await bench.exchange(
        `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${more || "Connection: close\r\n"}\r\n`,
      );
    expect(closed.seen).toEqual([]);
  });
});

test("one that is open is called by its path, and may be called without waiting", async () => {
  const host = "localhost";
  expect(await bench.call({ host, path: "/fn/default/other/" })).toMatchObject({ body: "open" });
  await bench.call({ host, path: "/async/default/other/" });
  expect(accepted).toEqual(["default/other"]);
});

/** What no rule decides about is the Function's own. */
test.each(["/a%09b", "/a%0d%0ab", "/%7f", "/open/..%3b/admin", "/a%3fb%23c", "/%e0%80%ae", "/%00"])(
  "at a Function's own host the path %s passes unchanged",
  async (path) => {
    const host = "other.default.localhost";
    expect(await bench.call({ host, path })).toMatchObject({ body: "open" });
    expect(open.seen.map(({ url }) => url)).toEqual([path]);
  },
);

test("a call that may wait is accepted at the names of the gateway's own Service, and at no other", async () => {
  await bench.close();
  accepted.length = 0;
  const calls = {
    accept: async ({ key, response }: { key: string; response: { end(): unknown } }) => {
      accepted.push(key);
      response.end();
    },
    report: async () => {},
  };
  const ownNames = [
    "serverless-gateway.kyma-system",
    "serverless-gateway.kyma-system.svc.cluster.local",
  ];
  bench = await startExposureBench({ calls, ownNames });
  await bench.service("hello");
  await bench.endpoints([await bench.pod((_, response) => response.end("hello"))]);
  const statuses: number[] = [];
  for (const host of [
    ...ownNames,
    `${ownNames[0]}:80`,
    "Serverless-Gateway.kyma-system",
    "serverless-gateway.other",
  ])
    statuses.push(
      (await bench.call({ host, method: "POST", path: "/async/default/hello/" })).status,
    );
  expect(statuses).toEqual([200, 200, 200, 200, 404]);
  expect(accepted).toEqual(Array.from({ length: 4 }, () => "default/hello"));
});
