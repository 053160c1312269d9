import { type NetworkPolicy } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { type ClusterView, type PodView } from "../cluster-view.ts";
import { isolatedPods } from "./policy-rules.ts";

type Spec = NonNullable<NetworkPolicy["spec"]>;

function pod(name: string, ip: string, more: Partial<PodView> = {}): PodView {
  const ports = [{ name: "web", protocol: "TCP" as const, port: 8080 }];
  return { namespace: "shop", labels: { app: name }, ip, ports, ...more };
}
const web = pod("web", "10.244.0.20");
const client = pod("client", "10.244.0.21");
const other = pod("client", "10.244.0.30", {
  namespace: "other",
  ports: [{ name: "web", protocol: "TCP", port: 9090 }],
});

function isolated(direction: "ingress" | "egress", spec: Partial<Spec>) {
  const policy = { metadata: { name: "p", namespace: "shop" }, spec: { podSelector: {}, ...spec } };
  const view: ClusterView = {
    services: [],
    policies: [policy],
    pods: [web, client, other],
    namespaces: new Map([
      ["shop", { team: "a" }],
      ["other", { team: "b" }],
    ]),
  };
  return Object.fromEntries(
    isolatedPods(view, direction).map(({ ip, allowed }) => [ip, allowed] as const),
  );
}

const toWeb = { podSelector: { matchLabels: { app: "web" } } };

describe("what a NetworkPolicy lets through", () => {
  test.for<[string, "ingress" | "egress", Partial<Spec>, Record<string, string[]>]>([
    ["nothing, for all Pods", "ingress", {}, { "10.244.0.20": [], "10.244.0.21": [] }],
    ["nothing of a direction that it is not for", "egress", {}, {}],
    ["anything", "ingress", { ...toWeb, ingress: [{}] }, { "10.244.0.20": [""] }],
    [
      "Pods of its namespace",
      "ingress",
      { ...toWeb, ingress: [{ from: [{ podSelector: { matchLabels: { app: "client" } } }] }] },
      { "10.244.0.20": ["ip saddr { 10.244.0.21 }"] },
    ],
    [
      "Pods of other namespaces",
      "ingress",
      { ...toWeb, ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: "b" } } }] }] },
      { "10.244.0.20": ["ip saddr { 10.244.0.30 }"] },
    ],
    [
      "Pods that no selector finds: none",
      "ingress",
      {
        ...toWeb,
        ingress: [
          {
            from: [
              {
                namespaceSelector: { matchLabels: { team: "b" } },
                podSelector: { matchLabels: { app: "web" } },
              },
            ],
          },
        ],
      },
      { "10.244.0.20": [] },
    ],
    [
      "ports, ranges, names and protocols",
      "ingress",
      {
        ...toWeb,
        ingress: [
          {
            ports: [
              { port: 80 },
              { port: 1000, endPort: 2000, protocol: "UDP" },
              { port: "web" },
              { port: "none" },
              { protocol: "SCTP" },
            ],
          },
        ],
      },
      {
        "10.244.0.20": [
          "tcp dport 80",
          "udp dport 1000-2000",
          "tcp dport 8080",
          "meta l4proto sctp",
        ],
      },
    ],
    [
      "networks without parts of them",
      "egress",
      {
        ...toWeb,
        policyTypes: ["Egress"],
        egress: [
          {
            to: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } }],
            ports: [{ port: 443 }],
          },
          { to: [{ ipBlock: { cidr: "fd00::/8" } }] },
        ],
      },
      {
        "10.244.0.20": [
          "ip daddr 10.0.0.0/8 ip daddr != { 10.1.0.0/16 } tcp dport 443",
          "ip daddr 255.255.255.255/32",
        ],
      },
    ],
    [
      "a named port, which is another number for each Pod that is called",
      "egress",
      {
        ...toWeb,
        egress: [
          {
            to: [{ namespaceSelector: {}, podSelector: { matchLabels: { app: "client" } } }],
            ports: [{ port: "web" }],
          },
        ],
      },
      {
        "10.244.0.20": [
          "ip daddr { 10.244.0.21 } tcp dport 8080",
          "ip daddr { 10.244.0.30 } tcp dport 9090",
        ],
      },
    ],
  ])("%s", ([, direction, spec, expected]) => {
    expect(isolated(direction, spec)).toEqual(expected);
  });
});
