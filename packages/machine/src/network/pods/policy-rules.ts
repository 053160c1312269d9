import { matchesLabels, type NetworkPolicy, requirementsOf } from "@spry/kube";
import { type ClusterView, type PodView, type Protocol } from "../cluster-view.ts";

type Spec = NonNullable<NetworkPolicy["spec"]>;
type Peer = NonNullable<NonNullable<Spec["ingress"]>[number]["from"]>[number];
type Port = NonNullable<NonNullable<Spec["ingress"]>[number]["ports"]>[number];
type Direction = "ingress" | "egress";

/** A Pod that policies isolate in a direction, and what they let through: nftables conditions. */
export interface Isolated {
  ip: string;
  allowed: string[];
}

/**
 * What NetworkPolicies (networking.k8s.io/v1) say of the Pods here, in one direction. A Pod that no
 * policy selects for it is not in the list: everything is let through to it.
 */
export function isolatedPods(view: ClusterView, direction: Direction): Isolated[] {
  const policies = view.policies.filter((policy) => isFor(policy, direction));
  return view.pods.flatMap((pod) => {
    const mine = policies.filter((policy) => selects(policy, pod));
    if (mine.length === 0) return [];
    const allowed = mine.flatMap((policy) => conditionsOf(policy, pod, direction, view));
    return [{ ip: pod.ip, allowed: [...new Set(allowed)] }];
  });
}

/** Without types a policy is for ingress, and for egress if it has rules for that. */
export function isFor({ spec }: NetworkPolicy, direction: Direction): boolean {
  const wanted = direction === "ingress" ? "Ingress" : "Egress";
  if (spec?.policyTypes) return spec.policyTypes.includes(wanted);
  return direction === "ingress" || spec?.egress !== undefined;
}

export function selects({ metadata, spec }: NetworkPolicy, pod: PodView): boolean {
  if (metadata.namespace !== pod.namespace) return false;
  return matchesLabels(requirementsOf(spec?.podSelector ?? {}), pod.labels);
}

function conditionsOf(
  { metadata, spec }: NetworkPolicy,
  pod: PodView,
  direction: Direction,
  view: ClusterView,
): string[] {
  const side = direction === "ingress" ? "saddr" : "daddr";
  const rules = (direction === "ingress" ? spec?.ingress : spec?.egress) ?? [];
  return rules.flatMap((rule) => {
    const peers = ("from" in rule ? rule.from : "to" in rule ? rule.to : undefined) ?? [];
    const { ports = [] } = rule;
    if (peers.length === 0) return join("", ports, direction === "ingress" ? [pod] : view.pods);
    return peers.flatMap((peer) => {
      const block = blockCondition(peer, side);
      if (block !== undefined) return join(block, ports, direction === "ingress" ? [pod] : []);
      const pods = podsOf(peer, metadata.namespace ?? "", view);
      if (pods.length === 0) return [];
      const named = direction === "egress" && ports.some(({ port }) => typeof port === "string");
      // A named port is another number for each Pod that is called.
      const groups = named ? pods.map((each) => [each]) : [pods];
      return groups.flatMap((group) => {
        const list = [...new Set(group.map(({ ip }) => ip))].join(", ");
        return join(`ip ${side} { ${list} }`, ports, direction === "ingress" ? [pod] : group);
      });
    });
  });
}

/** The peers' condition with that of each port; `targets` say what a port's name stands for. */
function join(peers: string, ports: readonly Port[], targets: readonly PodView[]): string[] {
  if (ports.length === 0) return [peers];
  return ports
    .flatMap((port) => portConditions(port, targets))
    .map((condition) => `${peers} ${condition}`.trim());
}

function portConditions({ port, endPort, protocol = "TCP" }: Port, targets: readonly PodView[]) {
  const name = protocol.toLowerCase();
  if (port === undefined) return [`meta l4proto ${name}`];
  if (typeof port === "number")
    return [`${name} dport ${endPort === undefined ? port : `${port}-${endPort}`}`];
  const isMeant = (each: PodView["ports"][number]) =>
    each.name === port && each.protocol === (protocol as Protocol);
  const numbers = targets.flatMap(({ ports }) => ports.filter(isMeant).map(({ port }) => port));
  return [...new Set(numbers)].map((number) => `${name} dport ${number}`);
}

const ipv4Block = /^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/;

function blockCondition({ ipBlock }: Peer, side: string): string | undefined {
  if (!ipBlock) return undefined;
  // Pods have no IPv6 here: such a block lets nothing through.
  const cidr = ipv4Block.test(ipBlock.cidr) ? ipBlock.cidr : "255.255.255.255/32";
  const except = (ipBlock.except ?? []).filter((each) => ipv4Block.test(each));
  const without = except.length > 0 ? ` ip ${side} != { ${except.join(", ")} }` : "";
  return `ip ${side} ${cidr}${without}`;
}

export function podsOf(
  { podSelector, namespaceSelector }: Peer,
  own: string,
  { pods, namespaces }: ClusterView,
): PodView[] {
  const inNamespace = namespaceSelector && requirementsOf(namespaceSelector);
  const wanted = requirementsOf(podSelector ?? {});
  return pods.filter(({ namespace, labels }) => {
    const isNear = inNamespace
      ? matchesLabels(inNamespace, namespaces.get(namespace) ?? {})
      : namespace === own;
    return isNear && matchesLabels(wanted, labels);
  });
}
