import { createHash } from "node:crypto";
import { matchesLabels, type NetworkPolicy, requirementsOf } from "@spry/kube";
import { type ClusterView, type PodView, type Protocol } from "../cluster-view.ts";
import { type IpRange, isEverything, printedRange, rangeOf, union, without } from "./ip-ranges.ts";
import { type Elements } from "./nft-tables.ts";

type Spec = NonNullable<NetworkPolicy["spec"]>;
export type Peer = NonNullable<NonNullable<Spec["ingress"]>[number]["from"]>[number];
type Port = NonNullable<NonNullable<Spec["ingress"]>[number]["ports"]>[number];
export type Direction = "ingress" | "egress";

/** One rule of a policy, in either direction. */
export interface Rule {
  /** None: any. */
  peers: readonly Peer[];
  /** None: any. */
  ports: readonly Port[];
}

/** Chains and sets of nftables by which policies of a direction are kept, and the chain of each Pod that they isolate. */
export interface PolicyTables {
  chains: Map<string, readonly string[]>;
  sets: Map<string, Elements>;
  isolated: Map<string, string>;
}

/** What policies are decided by, the same object as long as nothing of it changes. */
export interface PolicyContext {
  pods: readonly PodView[];
  namespaces: ClusterView["namespaces"];
  podsIn(namespace: string): readonly PodView[];
  /** Equal as long as the Pods of the namespace are the same. */
  stampOf(namespace: string): string;
  /** Equal as long as all Pods, and all labels of namespaces, are the same. */
  stamp: string;
}

/**
 * The parts of NetworkPolicies (networking.k8s.io/v1) for the Pods here. What follows from a policy alone is computed once, and again
 * when Pods that it is about have changed: a tenant's policies cost nothing when something of another one changes.
 */
export class PolicyRules {
  /** By policy and direction; in a WeakMap, for a changed policy is another object. */
  readonly #known = {
    ingress: new WeakMap<NetworkPolicy, KnownParts>(),
    egress: new WeakMap<NetworkPolicy, KnownParts>(),
  };

  /** A Pod that no policy selects for the direction is not isolated: everything is let through to it. */
  tables(
    policies: readonly NetworkPolicy[],
    context: PolicyContext,
    direction: Direction,
  ): PolicyTables {
    const tables: PolicyTables = { chains: new Map(), sets: new Map(), isolated: new Map() };
    const mine = policies.filter((policy) => isFor(policy, direction));
    const byNamespace = Map.groupBy(mine, ({ metadata }) => metadata.namespace ?? "");
    for (const [namespace, own] of byNamespace) {
      for (const pod of context.podsIn(namespace)) {
        const jumps = own
          .filter((policy) => selects(policy, pod))
          .map((policy) => `jump ${this.#chainFor(policy, pod, context, direction, tables)}`);
        if (jumps.length === 0) continue;
        const rules = [...new Set(jumps), "drop"];
        const chain = `pod_${hashOf(rules)}`;
        tables.chains.set(chain, rules);
        tables.isolated.set(pod.ip, chain);
      }
    }
    return tables;
  }

  /** The chain of what a policy lets through for a Pod; the same for all Pods, unless it names ports. */
  #chainFor(
    policy: NetworkPolicy,
    pod: PodView,
    context: PolicyContext,
    direction: Direction,
    tables: PolicyTables,
  ): string {
    const parts = this.#partsOf(policy, context, direction);
    const key = direction === "ingress" && parts.namesPorts ? JSON.stringify(pod.ports) : "";
    let made = parts.byPorts.get(key);
    if (!made) parts.byPorts.set(key, (made = madeOf(policy, pod, context, direction)));
    tables.chains.set(made.chain, made.rules);
    for (const [name, elements] of made.sets) tables.sets.set(name, elements);
    return made.chain;
  }

  #partsOf(policy: NetworkPolicy, context: PolicyContext, direction: Direction): KnownParts {
    const known = this.#known[direction];
    const found = known.get(policy);
    const rules = found ? undefined : rulesOf(policy.spec, direction);
    const isWide = found?.isWide ?? rules?.some((rule) => looksFar(rule, direction)) ?? false;
    const stamp = isWide ? context.stamp : context.stampOf(policy.metadata.namespace ?? "");
    if (found?.stamp === stamp) return found;
    const namesPorts =
      found?.namesPorts ??
      rules?.some(({ ports }) => ports.some(({ port }) => typeof port === "string")) ??
      false;
    const parts = { stamp, isWide, namesPorts, byPorts: new Map<string, MadeChain>() };
    known.set(policy, parts);
    return parts;
  }
}

interface KnownParts {
  stamp: string;
  /** Whether Pods of other namespaces matter. */
  isWide: boolean;
  namesPorts: boolean;
  byPorts: Map<string, MadeChain>;
}

interface MadeChain {
  chain: string;
  rules: readonly string[];
  sets: Map<string, Elements>;
}

function looksFar({ peers, ports }: Rule, direction: Direction): boolean {
  if (peers.some(({ namespaceSelector }) => namespaceSelector)) return true;
  return (
    direction === "egress" &&
    peers.length === 0 &&
    ports.some(({ port }) => typeof port === "string")
  );
}

function madeOf(
  policy: NetworkPolicy,
  pod: PodView,
  context: PolicyContext,
  direction: Direction,
): MadeChain {
  const sets = new Map<string, Elements>();
  const { namespace = "" } = policy.metadata;
  const conditions = rulesOf(policy.spec, direction).flatMap((rule) =>
    conditionsOf(rule, { namespace, pod, context, direction, sets }),
  );
  const rules = [...new Set(conditions)].map((condition) => `${condition} accept`.trim());
  return { chain: `policy_${hashOf(rules)}`, rules, sets };
}

/** Without types a policy is for ingress, and for egress if it has rules for that. */
export function isFor({ spec }: NetworkPolicy, direction: Direction): boolean {
  const wanted = direction === "ingress" ? "Ingress" : "Egress";
  if (spec?.policyTypes) return spec.policyTypes.includes(wanted);
  return direction === "ingress" || spec?.egress !== undefined;
}

const requirements = new WeakMap<object, ReturnType<typeof requirementsOf>>();

/** Read once for each selector. */
function requirementsIn(selector: Parameters<typeof requirementsOf>[0]) {
  if (!selector) return requirementsOf(selector);
  let found = requirements.get(selector);
  if (!found) requirements.set(selector, (found = requirementsOf(selector)));
  return found;
}

const everything = {};

export function selects({ metadata, spec }: NetworkPolicy, pod: PodView): boolean {
  if (metadata.namespace !== pod.namespace) return false;
  return matchesLabels(requirementsIn(spec?.podSelector ?? everything), pod.labels);
}

export function rulesOf(spec: Spec | undefined, direction: Direction): Rule[] {
  if (direction === "ingress")
    return (spec?.ingress ?? []).map(({ from = [], ports = [] }) => ({ peers: from, ports }));
  return (spec?.egress ?? []).map(({ to = [], ports = [] }) => ({ peers: to, ports }));
}

interface RulePlace {
  namespace: string;
  /** Whose ports are meant by names, in ingress. */
  pod: PodView;
  context: PolicyContext;
  direction: Direction;
  /** Gets the sets that the conditions name. */
  sets: Map<string, Elements>;
}

function conditionsOf({ peers, ports }: Rule, place: RulePlace): string[] {
  const { context, direction, pod, sets, namespace } = place;
  const side = direction === "ingress" ? "saddr" : "daddr";
  const isEgress = direction === "egress";
  if (peers.length === 0) return join("", ports, isEgress ? context.pods : [pod]);
  const blocks = blocksOf(peers);
  const ofBlocks = isEverything(blocks) ? "" : `ip ${side} @${blockSet(blocks, sets)}`;
  const conditions = blocks.length > 0 ? join(ofBlocks, ports, isEgress ? [] : [pod]) : [];
  const selectors = peers.filter(({ ipBlock }) => !ipBlock);
  // A named port is another number for each Pod that is called.
  if (isEgress && ports.some(({ port }) => typeof port === "string")) {
    const called = new Set(selectors.flatMap((peer) => podsOf(peer, namespace, context)));
    const each = [...called].flatMap((one) => join(`ip ${side} ${one.ip}`, ports, [one]));
    return [...conditions, ...each];
  }
  const named = selectors.map((peer) => podSet(peer, namespace, context, sets));
  return [
    ...conditions,
    ...[...new Set(named)].flatMap((name) => join(`ip ${side} @${name}`, ports, [pod])),
  ];
}

/** All blocks of a rule's peers, without their exceptions. Pods have no IPv6 here: such a block lets nothing through. */
export function blocksOf(peers: readonly Peer[]): IpRange[] {
  return union(
    peers.flatMap(({ ipBlock }): readonly IpRange[] => {
      const range = ipBlock && rangeOf(ipBlock.cidr);
      if (!range) return [];
      const except = union(
        (ipBlock.except ?? []).map(rangeOf).filter((each) => each !== undefined),
      );
      return without(range, except);
    }),
  );
}

/** Named by what is in it: it never changes. */
function blockSet(ranges: readonly IpRange[], sets: Map<string, Elements>): string {
  const texts = ranges.map(printedRange);
  const name = `blocks_${hashOf(texts)}`;
  const elements = new Map(texts.map((each) => [each, ""]));
  sets.set(name, { kind: "set", type: "ipv4_addr", flags: "flags interval;", elements });
  return name;
}

/** Named by what is looked for: Pods come and go. */
function podSet(
  peer: Peer,
  namespace: string,
  context: PolicyContext,
  sets: Map<string, Elements>,
): string {
  const { podSelector, namespaceSelector } = peer;
  const wanted = [podSelector ?? {}, namespaceSelector ?? namespace];
  const name = `pods_${hashOf([JSON.stringify(wanted)])}`;
  const pods = podsOf(peer, namespace, context);
  const elements = new Map(pods.map(({ ip }) => [ip, ""]));
  sets.set(name, { kind: "set", type: "ipv4_addr", elements });
  return name;
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

export function podsOf(
  { podSelector, namespaceSelector }: Peer,
  own: string,
  { pods, podsIn, namespaces }: Pick<PolicyContext, "pods" | "podsIn" | "namespaces">,
): PodView[] {
  const inNamespace = namespaceSelector && requirementsIn(namespaceSelector);
  const wanted = requirementsIn(podSelector ?? everything);
  const near = inNamespace ? pods : podsIn(own);
  return near.filter(
    ({ namespace, labels }) =>
      (!inNamespace || matchesLabels(inNamespace, namespaces.get(namespace) ?? {})) &&
      matchesLabels(wanted, labels),
  );
}

/** The Pods of a view, by namespace, and what says whether they are the same as before. */
export function contextOf({ pods, namespaces }: ClusterView): PolicyContext {
  const byNamespace = Map.groupBy(pods, ({ namespace }) => namespace);
  const stamps = new Map<string, string>();
  const stampOf = (namespace: string) => {
    let stamp = stamps.get(namespace);
    if (stamp === undefined)
      stamps.set(namespace, (stamp = hashOf([JSON.stringify(byNamespace.get(namespace) ?? [])])));
    return stamp;
  };
  let all: string | undefined;
  return {
    pods,
    namespaces,
    podsIn: (namespace) => byNamespace.get(namespace) ?? [],
    stampOf,
    get stamp() {
      return (all ??= hashOf([JSON.stringify(pods), JSON.stringify([...namespaces])]));
    },
  };
}

function hashOf(texts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text).update("\n");
  return hash.digest("hex").slice(0, 20);
}
