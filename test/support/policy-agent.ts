/**
 * What a network plugin that knows NetworkPolicies does on a node, for one that has none: the node's packets from and to Pods
 * are dropped where policies say so. The reading of policies is the embedded engine's.
 */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { Informer, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";
import { podView } from "../../packages/machine/src/network/cluster-view.ts";
import { isolatedPods } from "../../packages/machine/src/network/pods/policy-rules.ts";

const settleMs = 20;
const table = "policies";

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
    const text = rulesOf([
      { name: "egress", side: "saddr", pods: isolatedPods(view, "egress") },
      { name: "ingress", side: "daddr", pods: isolatedPods(view, "ingress") },
    ]);
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

interface Direction {
  name: string;
  side: "saddr" | "daddr";
  pods: { ip: string; allowed: string[] }[];
}

/** The node itself reaches its Pods: what it sends is not forwarded. */
function rulesOf(directions: Direction[]): string {
  const chains = directions.flatMap(({ name, pods }) =>
    pods.map(
      ({ allowed }, i) =>
        `chain ${name}_${i} { ${[...allowed.map((each) => `${each} return`), "drop"].join("; ")}; }`,
    ),
  );
  const jumps = directions.flatMap(({ name, side, pods }) =>
    pods.map(({ ip }, i) => `ip ${side} ${ip} jump ${name}_${i};`),
  );
  return `table ip ${table}
delete table ip ${table}
table ip ${table} {
${chains.join("\n")}
chain forward { type filter hook forward priority 0; policy accept;
ct state established,related accept;
${jumps.join("\n")}
}
}
`;
}
