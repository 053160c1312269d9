/** NetworkPolicies of what the gateway leads to: its callers reach the gateway, which keeps the policies. */
import * as http from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { once } from "node:events";
import { domainMappings, functions } from "@spry/function";
import { type NetworkPolicy, resources } from "@spry/kube";
import { freePort } from "@spry/test-kit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CallAcceptor, type WaitingCall } from "../index.ts";
import { bodyOf } from "../testing/bench.ts";
import { type ExposureBench, startExposureBench } from "../testing/exposure.ts";
import { type InsideOptions } from "./entrances.ts";

/** Loopback is this machine, which policies never keep away; what has these addresses counts as Pods. */
const place = "127.96.7.1";
const shop = { namespace: "shop", labels: { role: "shop" } };
const isMachine = (address: string) => address === "127.0.0.1";
/** Where Services have their addresses: on one machine and on a cluster. */
const shapes: Record<"machine" | "cluster", { inside: InsideOptions; named: string }> = {
  machine: { inside: { own: ["127.96.0.0/12"], isMachine }, named: place },
  cluster: { inside: { own: ["10.9.8.7"], bind: place, isMachine }, named: "10.9.8.7" },
};

let bench: ExposureBench;
let port: number;
let accepted: WaitingCall[];
const calls: CallAcceptor = {
  async accept(call) {
    accepted.push(call);
    call.response.writeHead(202, {}).end();
  },
  report: async () => {},
};

async function start({ inside, named }: (typeof shapes)["machine"]): Promise<void> {
  accepted = [];
  port = await freePort();
  bench = await startExposureBench({ withKnative: true, calls, inside });
  const { client } = bench;
  for (const name of ["shop", "bank"]) {
    const metadata = { name, labels: { team: name } };
    await client.create(resources.namespaces, { metadata });
    // Nobody makes one here, without which no Pod is created.
    const account = { metadata: { name: "default", namespace: name } };
    await client.create(resources.serviceAccounts, account);
  }
  await podAt("127.0.9.1", "shop", shop.labels);
  await podAt("127.0.9.2", "bank", {});
  await podAt("127.0.9.3", "default", { role: "near" });
  const backend = await bench.pod((_request, response) => response.end("in"));
  const ports = [{ containerPort: 8080, name: "http1" }];
  await bench.knative.revision("a", { containers: [{ name: "main", image: "x", ports }] });
  await bench.revisionPods("a", [backend]);
  await bench.knative.route("hello", [{ revisionName: "a", percent: 100, tag: "t" }]);
  await bench.knative.gatewaySlice("hello", named, port);
  await bench.heard();
  await expect.poll(() => from("127.0.9.1").catch(() => 0)).toBe(200);
}
beforeEach(() => start(shapes.machine));
afterEach(() => bench.close());

async function podAt(ip: string, namespace: string, labels: Record<string, string>): Promise<void> {
  const metadata = { name: `at-${ip.replaceAll(".", "-")}`, namespace, labels };
  const spec = { nodeName: "n", containers: [{ name: "main", image: "x" }] };
  await bench.client.create(resources.pods, { metadata, spec });
  const status = { phase: "Running", podIP: ip, podIPs: [{ ip }] };
  await bench.client.patch(resources.pods, metadata, { status }, { subresource: "status" });
}

async function from(localAddress: string, headers: Record<string, string> = {}): Promise<number> {
  const request = http.get({ host: place, port, localAddress, headers, agent: false });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

type Spec = NonNullable<NetworkPolicy["spec"]>;

const addresses = ["127.0.9.1", "127.0.9.2", "127.0.9.3", "127.0.9.9", "127.0.0.1"];
const everyone = async (call: (address: string) => Promise<number> = from) =>
  Object.fromEntries(
    await Promise.all(addresses.map(async (address) => [address.slice(6), await call(address)])),
  ) as Record<string, number>;

async function policy(spec: Spec, namespace = "default"): Promise<void> {
  const metadata = { name: "who", namespace };
  await bench.client.apply(resources.networkPolicies, { metadata, spec }, { fieldManager: "test" });
  await bench.heard();
}

const all = { "9.1": 200, "9.2": 200, "9.3": 200, "9.9": 200, "0.1": 200 };
const none = { "9.1": 403, "9.2": 403, "9.3": 403, "9.9": 403, "0.1": 200 };
type Ingress = NonNullable<Spec["ingress"]>;
const ofShop = { namespaceSelector: { matchLabels: { team: "shop" } } };

test.each<[what: string, ingress: Ingress, answers: Record<string, number>]>([
  ["nobody", [], none],
  ["everybody", [{}], all],
  ["one namespace", [{ from: [ofShop] }], { ...none, "9.1": 200 }],
  ["Pods of its own", [{ from: [{ podSelector: {} }] }], { ...none, "9.3": 200 }],
  [
    "some Pods of a namespace",
    [{ from: [{ ...ofShop, podSelector: { matchLabels: { role: "other" } } }] }],
    none,
  ],
  [
    "a block of addresses",
    [{ from: [{ ipBlock: { cidr: "127.0.9.0/24", except: ["127.0.9.2/32"] } }] }],
    { ...all, "9.2": 403 },
  ],
  ["its port", [{ ports: [{ port: 8080 }] }], all],
  ["its port by name", [{ ports: [{ port: "http1" }] }], all],
  ["another port", [{ ports: [{ port: 8081 }] }], none],
])("a policy that admits %s", async (_, ingress, answers) => {
  await policy({ podSelector: { matchLabels: { app: "a" } }, ingress });
  await expect.poll(() => everyone()).toEqual(answers);
});

test.each<[what: string, spec: Spec, namespace?: string]>([
  ["of other Pods", { podSelector: { matchLabels: { app: "b" } } }],
  ["of another namespace", { podSelector: {} }, "shop"],
  ["for what Pods call", { podSelector: {}, policyTypes: ["Egress"] }],
])("a policy %s keeps no caller away", async (_, spec, namespace) => {
  await policy(spec, namespace);
  expect(await everyone()).toEqual(all);
});

test("a call that may wait, and one for a tag, are no ways around it", async () => {
  await bench.knative.gatewaySlice("t-hello", place, port + 1);
  await policy({ podSelector: {} });
  expect(await from("127.0.9.1", { prefer: "respond-async" })).toBe(403);
  expect(accepted).toEqual([]);
  const agent = new http.Agent();
  const tag = async () => {
    const request = http.get({ host: place, port: port + 1, localAddress: "127.0.9.1", agent });
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    response.resume();
    return response.statusCode;
  };
  await expect.poll(() => tag().catch(() => 0)).toBe(403);
  agent.destroy();
});

/** At the address that is for everybody: what it says is what is meant, not where it has come to. */
const front = async (
  localAddress: string,
  host: string,
  { path = "/", headers = {} }: { path?: string; headers?: Record<string, string> } = {},
): Promise<number> => {
  const to = { host: "127.0.0.1", port: bench.port, localAddress, path, agent: false };
  const request = http.get({ ...to, headers: { host, ...headers } });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
};

const frontRaw = async (localAddress: string, head: string): Promise<number> => {
  const socket = connect({ host: "127.0.0.1", port: bench.port, localAddress });
  socket.write(`${head}\r\n\r\n`);
  const answer = (await bodyOf(socket)).toString("latin1");
  socket.destroy();
  return Number(answer.split(" ")[1]);
};

const overHttp2 = async (localAddress: string, authority: string): Promise<number> => {
  const to = { host: "127.0.0.1", port: bench.port, localAddress };
  const session = connectHttp2(`http://${authority}`, { createConnection: () => connect(to) });
  const request = session.request({ ":path": "/" });
  const [headers] = (await once(request, "response")) as [{ ":status": number }];
  session.destroy();
  return headers[":status"];
};

describe.each(Object.entries(shapes))("at the address for everybody, on a %s", (name, shape) => {
  const host = "hello.default.svc.cluster.local";
  /** 127.0.9.9 and 127.0.0.1 are not addresses of Pods; the others are. */
  const pods = { "9.1": 403, "9.2": 403, "9.3": 403, "9.9": 200, "0.1": 200 };

  beforeEach(async () => {
    if (name === "machine") return;
    await bench.close();
    await start(shape);
  });

  test("without a policy, every caller is admitted", async () => {
    expect(await everyone((address) => front(address, host))).toEqual(all);
  });

  test("a policy keeps Pods away that it does not admit, and no one else", async () => {
    await policy({ podSelector: { matchLabels: { app: "a" } }, ingress: [{ from: [ofShop] }] });
    await expect
      .poll(() => everyone((address) => front(address, host)))
      .toEqual({ ...pods, "9.1": 200 });
  });

  test("a block of addresses is for Pods, too", async () => {
    const ipBlock = { cidr: "127.0.9.0/24", except: ["127.0.9.2/32"] };
    await policy({ podSelector: {}, ingress: [{ from: [{ ipBlock }] }] });
    await expect
      .poll(() => everyone((address) => front(address, host)))
      .toEqual({ ...all, "9.2": 403 });
  });

  test.each<[what: string, call: (from: string) => Promise<number>]>([
    ["in capitals", (at) => front(at, "HELLO.Default.SVC")],
    ["with a dot and a port", (at) => front(at, `${host}.:80`)],
    ["of the machine", (at) => front(at, "hello.default.localhost")],
    ["of a tag", (at) => front(at, "t-hello.default.svc.cluster.local")],
    ["of a DomainMapping", (at) => front(at, "mapped.example.org")],
    ["and a tag's header", (at) => front(at, host, { headers: { "knative-serving-tag": "t" } })],
    [
      "and what proxies say",
      (at) => front(at, host, { headers: { "x-forwarded-for": "8.8.8.8" } }),
    ],
    [
      "and another one's address",
      (at) => front(at, host, { headers: { "x-real-ip": "127.0.0.1" } }),
    ],
    ["in a path", (at) => front(at, "localhost", { path: "/fn/default/hello/" })],
    ["of a call that may wait", (at) => front(at, host, { headers: { prefer: "respond-async" } })],
    ["of such a call in a path", (at) => front(at, "localhost", { path: "/async/default/hello" })],
    ["of OpenFaaS", (at) => front(at, "localhost", { path: "/async-function/hello" })],
    [
      "in absolute form",
      (at) => frontRaw(at, `GET http://${host}/ HTTP/1.1\r\nHost: x\r\nConnection: close`),
    ],
    ["of HTTP/1.0", (at) => frontRaw(at, `GET / HTTP/1.0\r\nHost: ${host}`)],
    [
      "for a WebSocket",
      (at) =>
        frontRaw(
          at,
          `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket`,
        ),
    ],
    [
      "to change to HTTP/2",
      (at) =>
        frontRaw(
          at,
          `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk`,
        ),
    ],
    ["of HTTP/2", (at) => overHttp2(at, host)],
  ])("no Host goes around it: one %s", async (_, call) => {
    const mapping = { metadata: { name: "mapped.example.org", namespace: "default" } };
    await bench.client.create(domainMappings, {
      ...mapping,
      spec: { ref: { kind: "Service", name: "hello" } },
    });
    const conditions = ["DomainClaimed", "ReferenceResolved"].map((type) => ({
      type,
      status: "True",
    }));
    await bench.client.patch(
      domainMappings,
      mapping.metadata,
      { status: { conditions } },
      { subresource: "status" },
    );
    await policy({ podSelector: {} });
    await expect.poll(() => call("127.0.9.1")).toBe(403);
    expect(accepted).toEqual([]);
  });

  test("a Function with a Deployment is kept by the policies of its Pods, whether it has any or not", async () => {
    const labels = { tier: "secret" };
    const source = { inline: { source: "module.exports={}" } };
    const metadata = { name: "plain", namespace: "default" };
    await bench.client.create(functions, {
      metadata,
      spec: { runtime: "nodejs24", source, labels },
    });
    await bench.service("plain");
    await policy({ podSelector: { matchLabels: labels }, ingress: [{ from: [ofShop] }] });
    const call = (address: string) => front(address, "plain.default.svc");
    expect(await call("127.0.9.2")).toBe(403);
    const backend = await bench.pod((_request, response) => response.end("in"));
    await bench.endpoints([backend], [], "plain");
    expect(await everyone(call)).toEqual({ ...pods, "9.1": 200 });
  });

  test("a Service without a Function is kept by the policies of the Pods that it has", async () => {
    const backend = await bench.pod((_request, response) => response.end("in"));
    await bench.service("left");
    await bench.endpoints([backend], [], "left");
    await podAt(backend.address, "default", { app: "left" });
    await policy({ podSelector: { matchLabels: { app: "left" } } });
    await expect
      .poll(() => everyone((address) => front(address, "left.default.svc")))
      .toEqual(pods);
  });

  test("a Service whose endpoints are another namespace's Pods is kept by that namespace's policies", async () => {
    const backend = await bench.pod((_request, response) => response.end("in"));
    await bench.service("left");
    await bench.endpoints([backend], [], "left");
    await podAt(backend.address, "bank", { app: "vault" });
    await policy({ podSelector: {}, ingress: [] }, "bank");
    await expect.poll(() => front("127.0.9.2", "left.default.svc")).toBe(403);
    expect(await front("127.0.9.1", "left.default.svc")).toBe(403);
  });

  test("a host of an APIRule is open to whom its rules admit", async () => {
    await bench.service("web", {});
    const backend = await bench.pod((_request, response) => response.end("in"));
    await bench.endpoints([backend], [], "web");
    await bench.apiRule("web", { service: { name: "web", namespace: "default", port: 80 } });
    await policy({ podSelector: {} });
    await expect.poll(() => front("127.0.9.1", "web.example.com")).toBe(200);
  });
});

describe("results of calls that may wait", () => {
  /** Whether a call to `hello` may have its result sent to these Services, for its caller's address. */
  const mayCall = async (address: string, ...services: string[]) => {
    accepted = [];
    const headers = { prefer: "respond-async" };
    expect(await from(address, headers)).toBe(202);
    const [call] = accepted;
    return Promise.all(services.map(async (service) => call?.mayCall(`default/${service}`)));
  };

  beforeEach(async () => {
    const backend = await bench.pod((_request, response) => response.end("in"));
    await bench.service("web", {});
    await bench.endpoints([backend], [], "web");
    await podAt(backend.address, "default", { app: "web" });
    await bench.service("empty", {});
    await bench.knative.revision("b", {});
    await bench.knative.route("other", [{ revisionName: "b", percent: 100 }]);
    await bench.heard();
  });

  test("reach every Service where no policy is", async () => {
    expect(await mayCall("127.0.9.1", "web", "empty", "other")).toEqual([true, true, true]);
  });

  test("do not reach what the caller could not", async () => {
    const near = { podSelector: {} };
    await policy({
      podSelector: { matchExpressions: [{ key: "app", operator: "In", values: ["web", "b"] }] },
      ingress: [{ from: [near] }],
    });
    await expect.poll(() => mayCall("127.0.9.1", "web", "other")).toEqual([false, false]);
    expect(await mayCall("127.0.9.3", "web", "other")).toEqual([true, true]);
  });

  test("do not reach what the Function could not", async () => {
    await policy({ podSelector: { matchLabels: { app: "web" } }, ingress: [{ from: [ofShop] }] });
    await expect.poll(() => mayCall("127.0.9.1", "web", "other")).toEqual([false, true]);
    await policy({
      podSelector: { matchLabels: { app: "web" } },
      ingress: [{ from: [ofShop, { podSelector: { matchLabels: { app: "a" } } }] }],
    });
    await expect.poll(() => mayCall("127.0.9.1", "web")).toEqual([true]);
    // The machine itself may call, but the Function may not.
    await policy({ podSelector: { matchLabels: { app: "web" } } });
    await expect.poll(() => mayCall("127.0.0.1", "web")).toEqual([false]);
  });

  test("do not reach a Service whose Pods are not known, where there are policies", async () => {
    await policy({ podSelector: { matchLabels: { app: "secret" } } });
    await expect.poll(() => mayCall("127.0.9.1", "empty", "web")).toEqual([false, true]);
  });
});
