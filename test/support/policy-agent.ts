/**
 * What a network plugin that knows NetworkPolicies does on a node, for one that has none: the node's packets from and to Pods
 * are dropped where policies say so. The reading of policies is the embedded engine's.
 */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { Informer, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";
import { type ClusterView, podView } from "../../packages/machine/src/network/cluster-view.ts";
import { type Elements, wholeText } from "../../packages/machine/src/network/pods/nft-tables.ts";
import { contextOf, PolicyRules } from "../../packages/machine/src/network/pods/policy-rules.ts";

const settleMs = 20;
const table = "ip policies";

export interface PolicyAgent {
  /** What it has not been able to do, if anything. */
  readonly failures: string[];
  stop(): void;
}

/** Resolves when policies that are there are enforced. `inNode` runs a program on the node; `scratch` is seen there too. */
export async function enforcePolicies(
  client: KubeClient,
  options: { scratch: string; inNode(file: string, args: string[]): Promise<unknown> },
): Promise<PolicyAgent> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const informer = <T extends KubeObject>(resource: Resource<T>) => {
    const all = new Informer<T>(client, resource);
    all.onChange(() => changed.resolve());
    void all.run(signal);
    return all;
  };
  let changed = Promise.withResolvers<void>();
  const pods = informer(resources.pods);
  const policies = informer(resources.networkPolicies);
  const namespaces = informer(resources.namespaces);
  await Promise.all([pods.synced, policies.synced, namespaces.synced]);
  const file = path.join(options.scratch, "policies.nft");
  const rules = new PolicyRules();
  let applied = "";
  const apply = async () => {
    changed = Promise.withResolvers();
    const view = {
      services: [],
      policies: [...policies.list()],
      pods: [...pods.list()].flatMap((pod) => {
        const { podIP, phase = "" } = pod.status ?? {};
        return podIP && !["Succeeded", "Failed"].includes(phase) ? podView(pod, podIP) : [];
      }),
      namespaces: new Map(
        [...namespaces.list()].map(({ metadata }) => [metadata.name ?? "", metadata.labels ?? {}]),
      ),
    };
    const text = rulesOf(rules, view);
    if (text === applied) return;
    writeFileSync(file, text);
    await options.inNode("nft", ["-f", file]);
    applied = text;
  };
  const failures: string[] = [];
  const follow = async () => {
    while (!signal.aborted) {
      await changed.promise;
      await new Promise((resolve) => setTimeout(resolve, settleMs));
      await apply().catch((error: unknown) => failures.push(String(error)));
    }
  };
  await apply();
  void follow();
  return { failures, stop: () => (stopping.abort(), changed.resolve()) };
}

/** The node itself reaches its Pods: what it sends is not forwarded. */
function rulesOf(rules: PolicyRules, view: ClusterView): string {
  const context = contextOf(view);
  const chains = new Map<string, readonly string[]>();
  const sets = new Map<string, Elements>();
  let frame = "";
  for (const [direction, side] of [
    ["egress", "saddr"],
    ["ingress", "daddr"],
  ] as const) {
    const tables = rules.tables(view.policies, context, direction);
    for (const [name, each] of tables.chains) chains.set(name, each);
    for (const [name, each] of tables.sets) sets.set(name, each);
    const elements = new Map([...tables.isolated].map(([ip, chain]) => [ip, `jump ${chain}`]));
    sets.set(direction, { kind: "map", type: "ipv4_addr : verdict", elements });
    frame += `chain of_${direction} { type filter hook forward priority 0; policy accept;
ct state established,related accept;
ip ${side} vmap @${direction}
}
`;
  }
  return wholeText({ name: table, chains, sets, frame });
}
