import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { silentLogger } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { why } from "../../sandbox/oci/testing.ts";
import { AddressBlock } from "./address-block.ts";
import { type ClusterView, type PodView } from "../cluster-view.ts";
import { runCommand } from "./commands.ts";
import { changesText, type NftTable, wholeText } from "./nft-tables.ts";
import { PodNetwork } from "./pod-network.ts";
import { Rulesets } from "./ruleset.ts";

/** Data directories whose platforms would like to have the same block of addresses. */
function rivals(count: number): string[] {
  const found: string[] = [];
  for (let index = 0; found.length < count; index++) {
    const dataDir = `/nonexistent/pod-network-${process.pid}/${index}`;
    const hash = createHash("sha256").update(dataDir).digest();
    if (new AddressBlock(hash.readUInt16BE(8)).number === 7) found.push(dataDir);
  }
  return found;
}

describe.skipIf(why !== "")(`networks of Pods${why}`, () => {
  test("no line of the rules is a shell's", async () => {
    const [dataDir = ""] = rivals(1);
    const network = await PodNetwork.open({ dataDir, log: silentLogger });
    const file = path.join(mkdtempSync(path.join(tmpdir(), "pod-network-")), "made");
    try {
      await expect(network.applyRules(`# rules\nEND\ntouch ${file}`)).rejects.toThrow(
        "syntax error",
      );
      expect(existsSync(file)).toBe(false);
    } finally {
      await network.close();
      rmSync(path.dirname(file), { recursive: true });
    }
  });

  test("rules that are changed one by one are those that are written as a whole", async () => {
    const [dataDir = ""] = rivals(1);
    const network = await PodNetwork.open({ dataDir, log: silentLogger });
    try {
      const rulesets = new Rulesets();
      let before: NftTable | undefined;
      for (let step = 0; step < 25; step++) {
        const options = { block: network.block, dnsPort: 5300, moved: new Map([[80, 8000]]) };
        const wanted = rulesets.of(viewAt(step, network.block), options);
        const changes = before ? changesText(before, wanted) : wholeText(wanted);
        if (changes !== "") await network.applyRules(changes);
        const changed = await rulesIn(dataDir);
        await network.applyRules(wholeText(wanted));
        expect(changed).toEqual(await rulesIn(dataDir));
        before = wanted;
      }
    } finally {
      await network.close();
    }
  });

  test("a network that a process has is not abandoned for another one of the same process", async () => {
    const [first = "", second = ""] = rivals(2);
    const network = await PodNetwork.open({ dataDir: first, log: silentLogger });
    try {
      await (await PodNetwork.open({ dataDir: second, log: silentLogger })).close();
      await expect(network.applyRules("table ip pods {}")).resolves.toBeUndefined();
    } finally {
      await network.close();
    }
  });

  test("platforms that start at the same time get blocks of their own", async () => {
    const opening = rivals(3).map((dataDir) => PodNetwork.open({ dataDir, log: silentLogger }));
    const opened = await Promise.allSettled(opening);
    for (const each of opened) if (each.status === "fulfilled") await each.value.close();
    const blocks = opened.map((each) =>
      each.status === "fulfilled" ? each.value.block.cidr : each,
    );
    expect(blocks).toEqual(blocks.filter((each) => typeof each === "string"));
    expect(new Set(blocks).size).toBe(3);
  });
});

/** A cluster in which something comes, changes or goes with each step. */
function viewAt(step: number, block: AddressBlock): ClusterView {
  const isThere = (index: number) => (step * 7 + index * 5) % 3 !== 0;
  const pods = Array.from({ length: 12 }, (_, index): PodView => ({
    namespace: index % 2 ? "a" : "b",
    labels: { app: `app-${index % 4}` },
    ip: block.pod(index),
    ports: [{ name: "web", protocol: "TCP", port: 8080 + (index % 3) }],
  })).filter((_, index) => isThere(index));
  const services = Array.from({ length: 10 }, (_, index) => ({
    namespace: "a",
    name: `s-${index}`,
    clusterIp: `10.96.7.${index + 20}`,
    ports: [
      {
        name: "",
        protocol: "TCP" as const,
        port: 80,
        endpoints: pods.slice(0, (step + index) % 5).map(({ ip }) => ({ ip, port: 8080 })),
      },
    ],
    addresses: [],
    affinitySeconds: (step + index) % 4 === 0 ? 10 : undefined,
  })).filter((_, index) => isThere(index));
  const selector = (index: number) => ({ podSelector: { matchLabels: { app: `app-${index}` } } });
  const policies = [
    { ...selector(0), ingress: [{ from: [selector(1), { ipBlock: { cidr: "10.0.0.0/8" } }] }] },
    { podSelector: {}, ingress: [{ ports: [{ port: "web" }] }, { from: [selector(step % 4)] }] },
    {
      podSelector: {},
      policyTypes: ["Egress"],
      egress: [
        {
          to: [
            { ipBlock: { cidr: "0.0.0.0/0", except: [`10.${step % 3}.0.0/16`, "192.168.0.0/16"] } },
            { namespaceSelector: {}, podSelector: {} },
          ],
          ports: [{ port: 443 }, { port: 1000, endPort: 2000, protocol: "UDP" }],
        },
        { to: [{ namespaceSelector: {} }], ports: [{ port: "web" }] },
      ],
    },
    { ...selector(2), ingress: [{ from: [{ ipBlock: { cidr: "0.0.0.0/0" } }] }] },
    { ...selector(3), ingress: [] },
  ]
    .map((spec, index) => ({
      metadata: { name: `p-${index}`, namespace: index % 2 ? "a" : "b" },
      spec,
    }))
    .filter((_, index) => isThere(index + 1));
  return {
    services,
    policies,
    pods,
    namespaces: new Map([
      ["a", {}],
      ["b", {}],
    ]),
  };
}

/** All rules, without numbers and orders that mean nothing. */
async function rulesIn(dataDir: string): Promise<string[]> {
  const hash = createHash("sha256").update(dataDir).digest("hex");
  const args = [
    "netns",
    "exec",
    `spry-${hash.slice(0, 8)}`,
    "nft",
    "-j",
    "list",
    "table",
    "ip",
    "pods",
  ];
  const { nftables } = JSON.parse(await runCommand("ip", args)) as { nftables: object[] };
  const rules = nftables.filter((each) => "rule" in each);
  const others = nftables.filter((each) => !("rule" in each));
  // The order of rules matters within a chain alone.
  const chains = Map.groupBy(rules, (each) => (each as { rule: { chain: string } }).rule.chain);
  const texts = [...others, ...[...chains].map(([chain, list]) => ({ chain, list }))];
  const plain = (key: string, value: unknown) => {
    if (key === "handle") return undefined;
    if (key !== "elem" || !Array.isArray(value)) return value;
    return value.map((each) => JSON.stringify(each)).sort();
  };
  return texts.map((each) => JSON.stringify(each, plain)).sort();
}
