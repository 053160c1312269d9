import { type NetworkPolicy } from "@spry/kube";
import { expect, test } from "vitest";
import { callersOf } from "./callers.ts";
import { type ClusterView, podsBehind, type PodView } from "./cluster-view.ts";

const pod = (namespace: string, name: string, ip: string): PodView => ({
  namespace,
  labels: { app: name },
  ip,
  ports: [{ name: "web", protocol: "TCP", port: 8080 }],
});
const pods = [
  pod("shop", "till", "127.0.0.2"),
  pod("shop", "stock", "127.0.0.3"),
  pod("web", "page", "127.0.0.4"),
];
const namespaces = new Map([
  ["shop", { name: "shop" }],
  ["web", { name: "web" }],
]);
const policy = (namespace: string, spec: NonNullable<NetworkPolicy["spec"]>): NetworkPolicy => ({
  metadata: { name: "p", namespace },
  spec,
});
const view = (...policies: NetworkPolicy[]): ClusterView => ({
  services: [],
  policies,
  pods,
  namespaces,
});
const toTill = (...policies: NetworkPolicy[]) =>
  callersOf(view(...policies))({ ip: "127.0.0.2", port: 8080 }, "TCP");
const podSelector = { matchLabels: { app: "till" } };
const page = { matchLabels: { name: "web" } };

test.each<[string, NetworkPolicy[], object]>([
  ["no policy", [], {}],
  ["a policy of others", [policy("web", { podSelector: {} })], {}],
  ["no caller", [policy("shop", { podSelector })], { admitted: [] }],
  [
    "its namespace",
    [policy("shop", { podSelector, ingress: [{ from: [{ podSelector: {} }] }] })],
    { admitted: ["127.0.0.2", "127.0.0.3"] },
  ],
  [
    "another namespace, at a port by its name",
    [
      policy("shop", {
        podSelector,
        ingress: [{ from: [{ namespaceSelector: page }], ports: [{ port: "web" }] }],
      }),
    ],
    { admitted: ["127.0.0.4"] },
  ],
  [
    "another namespace, at another port",
    [
      policy("shop", {
        podSelector,
        ingress: [{ from: [{ namespaceSelector: page }], ports: [{ port: 1, endPort: 8079 }] }],
      }),
    ],
    { admitted: [] },
  ],
  [
    "two policies together",
    [
      policy("shop", { podSelector }),
      policy("shop", { podSelector, ingress: [{ from: [{ namespaceSelector: page }] }] }),
    ],
    { admitted: ["127.0.0.4"] },
  ],
  [
    "a block of addresses without some",
    [
      policy("shop", {
        podSelector,
        ingress: [{ from: [{ ipBlock: { cidr: "127.0.0.0/8", except: ["127.0.0.4/32"] } }] }],
      }),
    ],
    { admitted: ["127.0.0.2", "127.0.0.3"] },
  ],
  [
    "all but those that may not call anyone",
    [policy("web", { podSelector: {}, policyTypes: ["Egress"] })],
    { refused: ["127.0.0.4"] },
  ],
])("%s may call", (_, policies, expected) => {
  expect(toTill(...policies)).toEqual(expected);
});

test("many Pods and policies cost little", () => {
  const many = Array.from({ length: 500 }, (_, n) =>
    pod("shop", `a${n}`, `127.1.${n >> 8}.${n & 255}`),
  );
  const policies = Array.from({ length: 100 }, (_, n) =>
    policy("shop", {
      podSelector: { matchLabels: { app: `a${n}` } },
      ingress: [{ from: [{ namespaceSelector: page }] }],
    }),
  );
  const begin = process.cpuUsage();
  const callers = callersOf({ ...view(...policies), pods: many });
  for (const { ip } of many) callers({ ip, port: 8080 }, "TCP");
  const { user, system } = process.cpuUsage(begin);
  expect((user + system) / 1_000).toBeLessThan(1_000);
});

test.each<[string, NetworkPolicy[], object]>([
  ["everyone, without a policy for its Pods", [policy("web", { podSelector: {} })], {}],
  ["nobody", [policy("shop", { podSelector })], { admitted: [] }],
  [
    "another namespace, at the Pods' port",
    [
      policy("shop", {
        podSelector,
        ingress: [
          { from: [{ namespaceSelector: page }], ports: [{ port: 8080 }, { port: "web" }] },
        ],
      }),
    ],
    { admitted: ["127.0.0.4"] },
  ],
])(
  "what is served on demand has no Pod: %s may call its place at the gateway",
  (_, policies, expected) => {
    const metadata = { name: "till", namespace: "shop" };
    const slice = (service: string, address: string) => ({
      metadata: {
        ...metadata,
        labels: {
          "kubernetes.io/service-name": service,
          "endpointslice.kubernetes.io/managed-by": "gateway.serving.spry",
        },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: [address] }],
      ports: [{ name: "http", port: 20_000 }],
    });
    const labels = { app: "till", "serving.knative.dev/service": "till" };
    const ports = [{ name: "web", containerPort: 8080 }];
    const template = { metadata: { labels }, spec: { containers: [{ name: "main", ports }] } };
    const deployment = { metadata, spec: { selector: {}, template } };
    const slices = [slice("till", "127.96.0.2"), slice("tag-till", "127.96.0.3")];
    const behind = podsBehind(slices as never, [deployment] as never);
    const callers = callersOf({ ...view(...policies), behind });
    for (const ip of ["127.96.0.2", "127.96.0.3"])
      expect(callers({ ip, port: 20_000 }, "TCP")).toEqual(expected);
    expect(callers({ ip: "127.96.0.4", port: 20_000 }, "TCP")).toEqual({});
  },
);
