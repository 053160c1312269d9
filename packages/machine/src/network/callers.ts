import { type NetworkPolicy } from "@spry/kube";
import {
  type ClusterView,
  type Endpoint,
  placeOf,
  type PodView,
  type Protocol,
} from "./cluster-view.ts";
import { addressNumber, contains, type IpRange } from "./pods/ip-ranges.ts";
import {
  blocksOf,
  contextOf,
  type Direction,
  isFor,
  podsOf,
  type PolicyContext,
  type Rule,
  rulesOf,
  selects,
} from "./pods/policy-rules.ts";

/** Who may call an endpoint, by addresses of Pods. */
export interface Callers {
  /** Only these; undefined: all. */
  admitted?: string[];
  /** None of these. */
  refused?: string[];
}

/**
 * What NetworkPolicies say of calls between Pods, for a sandbox that has no network to keep them in: the hooks of
 * `service-files.ts` heed it. Without policies there is nothing to heed.
 */
export function callersOf(view: ClusterView): (endpoint: Endpoint, protocol: Protocol) => Callers {
  if (view.policies.length === 0) return () => ({});
  const context = contextOf(view);
  const byNamespace = Map.groupBy(view.policies, ({ metadata }) => metadata.namespace ?? "");
  const policiesFor = (pod: PodView, direction: Direction) =>
    (byNamespace.get(pod.namespace) ?? []).filter(
      (policy) => isFor(policy, direction) && selects(policy, pod),
    );
  const pods = new Map(view.pods.map((pod) => [pod.ip, pod]));
  const confined = confinedGroups(view.pods, (pod) => policiesFor(pod, "egress"));
  /** Whether one of the policies lets a call through whose other side has this address. */
  const lets = (
    policies: readonly NetworkPolicy[],
    direction: Direction,
    other: string,
    called: Called,
  ) => {
    const number = addressNumber(other) ?? -1;
    return policies.some((policy) =>
      readRules(policy, direction, context).some(
        ({ ports, isAny, ranges, addresses }) =>
          isAtPort(ports, called) && (isAny || addresses.has(other) || contains(ranges, number)),
      ),
    );
  };
  return ({ ip, port }, protocol) => {
    const target = pods.get(ip);
    const own = { target, port, protocol };
    const behind = view.behind?.get(placeOf({ ip, port }));
    const calls: Called[] = behind
      ? behind.map((each) => ({ target: each, port: each.ports[0]?.port ?? defaultPort, protocol }))
      : [own];
    const isolated = calls.flatMap((called) => {
      const mine = called.target ? policiesFor(called.target, "ingress") : [];
      return mine.length > 0 ? [{ called, mine }] : [];
    });
    const isAdmitted = (caller: PodView) =>
      isolated.every(({ called, mine }) => lets(mine, "ingress", caller.ip, called));
    const refused = confined.filter(({ policies }) => !lets(policies, "egress", ip, own));
    return {
      ...(isolated.length > 0
        ? { admitted: view.pods.filter(isAdmitted).map((each) => each.ip) }
        : {}),
      ...(refused.length > 0 ? { refused: refused.flatMap(({ addresses }) => addresses) } : {}),
    };
  };
}

/** Pods that the same policies confine are asked about together. */
function confinedGroups(
  pods: readonly PodView[],
  policiesFor: (pod: PodView) => NetworkPolicy[],
): { policies: NetworkPolicy[]; addresses: string[] }[] {
  const groups = new Map<string, { policies: NetworkPolicy[]; addresses: string[] }>();
  for (const pod of pods) {
    const policies = policiesFor(pod);
    if (policies.length === 0) continue;
    const key = JSON.stringify([pod.namespace, policies.map(({ metadata }) => metadata.name)]);
    const group = groups.get(key);
    if (group) group.addresses.push(pod.ip);
    else groups.set(key, { policies, addresses: [pod.ip] });
  }
  return [...groups.values()];
}

interface ReadRule {
  ports: Rule["ports"];
  isAny: boolean;
  ranges: readonly IpRange[];
  addresses: ReadonlySet<string>;
}

const known = {
  ingress: new WeakMap<NetworkPolicy, { stamp: string; rules: ReadRule[] }>(),
  egress: new WeakMap<NetworkPolicy, { stamp: string; rules: ReadRule[] }>(),
};

/** Computed again when Pods, or labels of namespaces, have changed. */
function readRules(
  policy: NetworkPolicy,
  direction: Direction,
  context: PolicyContext,
): readonly ReadRule[] {
  const found = known[direction].get(policy);
  if (found?.stamp === context.stamp) return found.rules;
  const { namespace = "" } = policy.metadata;
  const rules = rulesOf(policy.spec, direction).map(({ peers, ports }) => ({
    ports,
    isAny: peers.length === 0,
    ranges: blocksOf(peers),
    addresses: new Set(
      peers
        .filter(({ ipBlock }) => !ipBlock)
        .flatMap((peer) => podsOf(peer, namespace, context).map(({ ip }) => ip)),
    ),
  }));
  known[direction].set(policy, { stamp: context.stamp, rules });
  return rules;
}

/** Of Pods that name none. */
const defaultPort = 8080;

interface Called {
  target: PodView | undefined;
  port: number;
  protocol: Protocol;
}

function isAtPort(ports: Rule["ports"], { target, port, protocol }: Called): boolean {
  if (ports.length === 0) return true;
  return ports.some((each) => {
    if ((each.protocol ?? "TCP") !== protocol) return false;
    if (each.port === undefined) return true;
    if (typeof each.port === "number")
      return each.port <= port && port <= (each.endPort ?? each.port);
    return target?.ports.some(({ name, port: number }) => name === each.port && number === port);
  });
}
