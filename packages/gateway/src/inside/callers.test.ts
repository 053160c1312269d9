/** NetworkPolicies of what is served on demand: its callers reach the gateway, which keeps the policies. */
import * as http from "node:http";
import { once } from "node:events";
import { type NetworkPolicy, resources } from "@spry/kube";
import { freePort } from "@spry/test-kit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type CallAcceptor } from "../index.ts";
import { type Bench, startBench } from "../testing/bench.ts";

/** Loopback is this machine, which policies never keep away; what has these addresses counts as Pods. */
const place = "127.96.7.1";
const shop = { namespace: "shop", labels: { role: "shop" } };

let bench: Bench;
let port: number;
let accepted: number;
const calls: CallAcceptor = {
  async accept({ response }) {
    accepted++;
    response.writeHead(202, {}).end();
  },
  report: async () => {},
};

beforeEach(async () => {
  accepted = 0;
  port = await freePort();
  const inside = {
    own: ["127.96.0.0/12"],
    isMachine: (address: string) => address === "127.0.0.1",
  };
  bench = await startBench({ withKnative: true, calls, inside });
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
  await bench.knative.gatewaySlice("hello", place, port);
  await bench.heard();
  await expect.poll(() => from("127.0.9.1").catch(() => 0)).toBe(200);
});
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

const everyone = async () =>
  Object.fromEntries(
    await Promise.all(
      ["127.0.9.1", "127.0.9.2", "127.0.9.3", "127.0.9.9", "127.0.0.1"].map(async (address) => [
        address.slice(6),
        await from(address),
      ]),
    ),
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
  await expect.poll(everyone).toEqual(answers);
});

test.each<[what: string, spec: Spec, namespace?: string]>([
  ["of other Pods", { podSelector: { matchLabels: { app: "b" } } }],
  ["of another namespace", { podSelector: {} }, "shop"],
  ["for what Pods call", { podSelector: {}, policyTypes: ["Egress"] }],
])("a policy %s keeps nobody away", async (_, spec, namespace) => {
  await policy(spec, namespace);
  expect(await everyone()).toEqual(all);
});

test("a call that may wait, and one for a tag, are no ways around it", async () => {
  await bench.knative.gatewaySlice("t-hello", place, port + 1);
  await policy({ podSelector: {} });
  expect(await from("127.0.9.1", { prefer: "respond-async" })).toBe(403);
  expect(accepted).toBe(0);
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
