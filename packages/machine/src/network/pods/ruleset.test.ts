import { type NetworkPolicy } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { type ClusterView, type PodView, type ServiceView } from "../cluster-view.ts";
import { AddressBlock } from "./address-block.ts";
import { changesText } from "./nft-tables.ts";
import { contextOf, PolicyRules } from "./policy-rules.ts";
import { Rulesets } from "./ruleset.ts";

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

const namespaces = new Map([
  ["shop", { team: "a" }],
  ["other", { team: "b" }],
]);
function viewOf(spec: Partial<Spec>, more: Partial<ClusterView> = {}): ClusterView {
  const policy = { metadata: { name: "p", namespace: "shop" }, spec: { podSelector: {}, ...spec } };
  return { services: [], policies: [policy], pods: [web, client, other], namespaces, ...more };
}

/** What each isolated Pod gets, with what is in the sets. */
function isolated(direction: "ingress" | "egress", spec: Partial<Spec>) {
  const view = viewOf(spec);
  const {
    chains,
    sets,
    isolated: pods,
  } = new PolicyRules().tables(view.policies, contextOf(view), direction);
  const content = (rule: string) =>
    rule.replaceAll(/@(\w+)/g, (_, name: string) => {
      const elements = [...(sets.get(name)?.elements.keys() ?? [])];
      return `{ ${elements.join(", ")} }`;
    });
  const allowed = (chain: string) =>
    (chains.get(chain) ?? [])
      .filter((rule) => rule !== "drop")
      .flatMap((rule) => chains.get(rule.replace("jump ", "")) ?? [])
      .map((rule) => content(rule.replace(/ ?accept$/, "")));
  return Object.fromEntries([...pods].map(([ip, chain]) => [ip, allowed(chain)] as const));
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
      { "10.244.0.20": ["ip saddr {  }"] },
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
          "ip daddr { 10.0.0.0-10.0.255.255, 10.2.0.0-10.255.255.255 } tcp dport 443",
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
          "ip daddr 10.244.0.21 tcp dport 8080",
          "ip daddr 10.244.0.30 tcp dport 9090",
        ],
      },
    ],
  ])("%s", ([, direction, spec, expected]) => {
    expect(isolated(direction, spec)).toEqual(expected);
  });
});

describe("what is written when something changes", () => {
  const many = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({
      ipBlock: { cidr: `10.${from + (index >> 8)}.${index & 255}.0/25` },
    }));
  const options = {
    block: new AddressBlock(0),
    dnsPort: 5300,
    moved: new Map<number, number>(),
  };

  function changesOf(change: (view: ClusterView) => ClusterView): string {
    const rulesets = new Rulesets();
    const services = Array.from({ length: 3000 }, (_, index) => serviceAt(index));
    const policies = Array.from({ length: 20 }, (_, index) => ({
      metadata: { name: `p-${index}`, namespace: "shop" },
      spec: { podSelector: {}, ingress: [{ from: many(index * 12, 3000) }] },
    }));
    const view = viewOf({}, { services, policies });
    const before = rulesets.of(view, options);
    return changesText(before, rulesets.of(change(view), options));
  }

  test("nothing, where nothing has changed", () => {
    expect(changesOf((view) => ({ ...view }))).toBe("");
  });

  test("one Service of thousands", () => {
    const text = changesOf((view) => ({ ...view, services: [...view.services, serviceAt(4000)] }));
    expect(text.split("\n")).toEqual([
      "add chain ip pods to_10_96_15_160_tcp_80",
      "add rule ip pods to_10_96_15_160_tcp_80 meta l4proto tcp dnat ip to 10.244.9.9:8080",
      "add element ip pods services { 10.96.15.160 . tcp . 80 : goto to_10_96_15_160_tcp_80 }",
    ]);
  });

  test("a Pod of another namespace is not written at all, for no policy is about it", () => {
    const stranger = pod("stranger", "10.244.0.40", { namespace: "third" });
    expect(changesOf((view) => ({ ...view, pods: [...view.pods, stranger] }))).toBe("");
  });

  test("one more Pod of a namespace with many blocks is one element", () => {
    const next = pod("next", "10.244.0.41");
    const text = changesOf((view) => ({ ...view, pods: [...view.pods, next] }));
    expect(text).toMatch(/^add element ip pods ingress \{ 10\.244\.0\.41 : jump pod_\w+ \}$/);
  });
});

function serviceAt(index: number): ServiceView {
  return {
    namespace: "other",
    name: `s-${index}`,
    clusterIp: `10.96.${index >> 8}.${index & 255}`,
    ports: [{ name: "", protocol: "TCP", port: 80, endpoints: [{ ip: "10.244.9.9", port: 8080 }] }],
    addresses: [],
  };
}
