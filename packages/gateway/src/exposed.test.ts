/** Hosts of APIRules through the front door: which rule, which Service, and what is changed on the way. */
import { apiRuleCrd, gatewayCrd } from "@spry/exposure";
import { apiRules } from "@spry/function";
import { type KubeClient, resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bodyOf, type TestPod } from "./testing/bench.ts";
import { type ExposureBench, plain, secured, startExposureBench } from "./testing/exposure.ts";

let bench: ExposureBench;
let pod: TestPod;
beforeEach(async () => {
  bench = await startExposureBench();
  pod = await bench.pod(async (request, response) => {
    const body = await bodyOf(request);
    response.setHeader("access-control-allow-origin", "*").setHeader("vary", "Accept");
    response.end(`${request.method} ${request.url} ${body.toString()}`);
  });
  await bench.service();
  await bench.endpoints([pod]);
});
afterEach(() => bench.close());

const host = "dice.example.com";
const get = (path: string, options: object = {}) => bench.call({ host, path, ...options });

describe("a request to the host of an APIRule", () => {
  test.each<[string, string, string, number, string]>([
    ["the path of a rule", "GET", "/a?x=1", 200, "GET /a?x=1 "],
    ["a path without dots", "GET", "/b/../a", 200, "GET /a "],
    ["a path with needless encodings", "GET", "/%61", 200, "GET /a "],
    ["a path below a rule's", "GET", "/a/b", 404, "nothing is exposed"],
    ["a method that no rule names", "POST", "/a", 404, "nothing is exposed"],
    ["a path that readers understand differently", "GET", "/a%5c..", 400, "several ways"],
    ["the path of a later rule", "POST", "/c/d", 200, "POST /c/d "],
  ])("%s: %s %s gets %d", async (_, method, path, status, body) => {
    const rules = [
      { path: "/a", methods: ["GET"], noAuth: true },
      { path: "/c/{**}", methods: ["POST"], noAuth: true },
    ];
    await bench.apiRule("dice", { rules });
    const answer = await get(path, { method });
    expect(answer).toMatchObject({ status, body: expect.stringContaining(body) as string });
  });

  test("is not served before there is one, nor after", async () => {
    expect(await get("/")).toMatchObject({ status: 404 });
    await bench.apiRule("dice", {});
    expect(await get("/")).toMatchObject({ status: 200 });
    await bench.apiRule("dice", { hosts: ["cube"] });
    expect(await get("/")).toMatchObject({ status: 404 });
  });

  test("gets another Service's port, in another namespace", async () => {
    await bench.client.create(resources.namespaces, { metadata: { name: "apps" } });
    const shop = { name: "shop", namespace: "default" };
    const service = { ...shop, port: 8443 };
    await bench.apiRule("dice", { service }, "apps");
    expect(await get("/")).toMatchObject({ status: 503, body: expect.stringContaining("exist") });
    await bench.client.create(resources.services, {
      metadata: shop,
      spec: {
        ports: [
          { name: "other", port: 80 },
          { name: "http", port: 8443 },
        ],
      },
    });
    const other = await bench.pod((_, response) => response.end("shop"));
    await bench.endpoints([other], [], "shop");
    // A Service of another namespace has to permit it.
    expect(await get("/")).toMatchObject({ status: 503 });
    const annotations = { "gateway.kyma-project.io/exposable-from": "apps" };
    await bench.client.patch(resources.services, shop, { metadata: { annotations } });
    await bench.heard();
    expect(await get("/")).toMatchObject({ status: 200, body: "shop" });
  });

  test("belongs to the oldest of two namespaces' APIRules", async () => {
    await bench.client.create(resources.namespaces, { metadata: { name: "apps" } });
    await bench.apiRule("dice", {});
    // Times of creation have seconds.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await bench.apiRule(
      "dice",
      { rules: [{ path: "/x", methods: ["GET"], noAuth: true }] },
      "apps",
    );
    expect((await get("/a")).status).toBe(200);
  });

  test("has the headers and cookies that the rule sets, in place of the client's", async () => {
    const request = {
      headers: { "X-Mine": "ours", "x-copy": "%REQ(x-theirs)%", "content-length": "7" },
      cookies: { a: "1", b: "2" },
    };
    const { "content-length": _, ...headers } = request.headers;
    const rules = [
      { path: "/*", methods: ["GET"], noAuth: true, request: { ...request, headers } },
    ];
    await bench.apiRule("dice", { rules });
    const sent = { "x-mine": "theirs", "x-theirs": "v", cookie: "a=3" };
    expect(await get("/", { headers: sent })).toMatchObject({ status: 200 });
    expect(pod.seen[0]?.headers).toMatchObject({
      host,
      "x-mine": "ours",
      "x-copy": "v",
      cookie: "a=1; b=2",
      "x-forwarded-proto": "http",
    });
  });

  test("ends after the rule's time limit", async () => {
    await bench.apiRule("dice", { timeout: 1 });
    const silent = await bench.pod(() => {});
    await bench.endpoints([silent]);
    expect(await get("/")).toMatchObject({ status: 504 });
  });

  test("meets the APIRule's CORS policy, not the Service's", async () => {
    const corsPolicy = { allowOrigins: [{ exact: "https://a.com" }], allowMethods: ["GET"] };
    await bench.apiRule("dice", { corsPolicy });
    const origin = (value: string) => get("/", { headers: { origin: value } });
    expect((await origin("https://a.com")).headers).toMatchObject({
      "access-control-allow-origin": "https://a.com",
      vary: "Accept, Origin",
    });
    const stranger = await origin("https://b.com");
    expect(stranger.headers).not.toHaveProperty("access-control-allow-origin");
    const preflight = await get("/", {
      method: "OPTIONS",
      headers: { origin: "https://a.com", "access-control-request-method": "GET" },
    });
    expect(preflight).toMatchObject({
      status: 200,
      headers: { "access-control-allow-methods": "GET" },
    });
    expect(pod.seen).toHaveLength(2);
  });

  test("goes to HTTPS where the Gateway asks for it", async () => {
    const hosts = ["*.example.com"];
    await bench.close();
    bench = await startExposureBench({ https: { port: 0 } });
    await bench.gatewayOf("kyma-gateway", [plain(hosts, { httpsRedirect: true }), secured(hosts)]);
    await bench.apiRule("dice", {});
    const location = `https://${host}:${bench.gateway.httpsPort}/a?b`;
    expect(await get("/a?b")).toMatchObject({ status: 301, headers: { location } });
  });
});

describe("a Function's own host", () => {
  const authentications = [{ issuer: "https://i.example", jwksUri: "https://i.example/keys" }];
  const jwt = { path: "/a", methods: ["GET"], jwt: { authentications } };

  test("is closed while an APIRule demands tokens of its callers, on whatever path", async () => {
    await bench.apiRule("dice", { rules: [{ path: "/b", methods: ["GET"], noAuth: true }, jwt] });
    const refused = { status: 403, body: expect.stringContaining("default/dice") as string };
    expect(await bench.call({ path: "/b" })).toMatchObject(refused);
    expect(await get("/b")).toMatchObject({ status: 200 });
    expect(pod.seen).toHaveLength(1);
    await bench.client.delete(apiRules, { namespace: "default", name: "dice" });
    await bench.heard();
    expect(await bench.call({ path: "/b" })).toMatchObject({ status: 200 });
  });

  test("is not closed by another namespace, which it does not permit", async () => {
    await bench.client.create(resources.namespaces, { metadata: { name: "apps" } });
    await bench.apiRule("dice", { rules: [jwt] }, "apps");
    expect(await bench.call()).toMatchObject({ status: 200 });
  });

  test("does not exist for clients outside when the Function is cluster-local", async () => {
    const target = { namespace: "default", name: "hello" };
    const labels = { "networking.knative.dev/visibility": "cluster-local" };
    await bench.client.patch(resources.services, target, { metadata: { labels } });
    await bench.heard();
    expect(await bench.call()).toMatchObject({ status: 404 });
    // What an APIRule exposes is open by that.
    await bench.apiRule("dice", {});
    expect(await get("/")).toMatchObject({ status: 200 });
  });
});

test("APIRules of another installation are not served, and guard nothing", async () => {
  const { metadata, ...rest } = apiRuleCrd({ url: "https://127.0.0.1:1", caBundle: "" });
  const name = metadata.name ?? "";
  await bench.close();
  const before = async (client: KubeClient) => {
    // Without our label.
    await client.create(resources.customResourceDefinitions, { ...rest, metadata: { name } });
    await client.create(resources.customResourceDefinitions, gatewayCrd());
  };
  bench = await startExposureBench({ before });
  await bench.service();
  await bench.endpoints([await bench.pod((_, response) => response.end("in"))]);
  const authentications = [{ issuer: "https://i.example", jwksUri: "https://i.example/keys" }];
  await bench.apiRule("dice", {
    rules: [{ path: "/*", methods: ["GET"], jwt: { authentications } }],
  });
  expect(await get("/")).toMatchObject({ status: 404 });
  expect(await bench.call()).toMatchObject({ status: 200, body: "in" });
});

test("a Function is called by its own host as before", async () => {
  await bench.apiRule("dice", {});
  expect(await bench.call({ path: "/%61/../b" })).toMatchObject({ body: "GET /%61/../b " });
});
