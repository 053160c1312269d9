import { BlockList, isIP } from "node:net";
import { type NetworkPolicy } from "@spry/kube";
import {
  type ClusterView,
  type Endpoint,
  placeOf,
  type PodView,
  type Protocol,
} from "./cluster-view.ts";
import { isFor, podsOf, selects } from "./pods/policy-rules.ts";

type Spec = NonNullable<NetworkPolicy["spec"]>;
type Peer = NonNullable<NonNullable<Spec["ingress"]>[number]["from"]>[number];
interface Rule {
  peers: Peer[];
  ports: NonNullable<NonNullable<Spec["ingress"]>[number]["ports"]>;
}

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
  const isPeer = peersOf(view);
  const policiesFor = (pod: PodView, type: Type) =>
    view.policies.filter((policy) => isFor(policy, type) && selects(policy, pod));
  const pods = new Map(view.pods.map((pod) => [pod.ip, pod]));
  const confined = view.pods.flatMap((pod) => {
    const policies = policiesFor(pod, "egress");
    return policies.length > 0 ? [{ pod, policies }] : [];
  });
  /** Whether one of the policies lets a call through whose other side has this address. */
  const lets = (policies: readonly NetworkPolicy[], type: Type, other: string, called: Called) =>
    policies.some(({ metadata, spec }) =>
      rulesOf(spec, type).some(
        ({ peers, ports }) =>
          isAtPort(ports, called) &&
          (peers.length === 0 ||
            peers.some((peer) => isPeer(peer, other, metadata.namespace ?? ""))),
      ),
    );
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
      ...(refused.length > 0 ? { refused: refused.map(({ pod }) => pod.ip) } : {}),
    };
  };
}

/** Of Pods that name none. */
const defaultPort = 8080;

type Type = "ingress" | "egress";

interface Called {
  target: PodView | undefined;
  port: number;
  protocol: Protocol;
}

function rulesOf(spec: Spec | undefined, type: Type): Rule[] {
  if (type === "ingress")
    return (spec?.ingress ?? []).map(({ from = [], ports = [] }) => ({ peers: from, ports }));
  return (spec?.egress ?? []).map(({ to = [], ports = [] }) => ({ peers: to, ports }));
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

/** Whether an address is a peer's of a policy in a namespace. Whom a peer selects is computed once. */
function peersOf(view: ClusterView) {
  const known = new Map<Peer, (address: string) => boolean>();
  return (peer: Peer, address: string, namespace: string): boolean => {
    let check = known.get(peer);
    if (!check) known.set(peer, (check = checkOf(peer, namespace, view)));
    return check(address);
  };
}

function checkOf(peer: Peer, namespace: string, view: ClusterView): (address: string) => boolean {
  const { ipBlock } = peer;
  if (!ipBlock) {
    const addresses = new Set(podsOf(peer, namespace, view).map(({ ip }) => ip));
    return (address) => addresses.has(address);
  }
  const [within, without] = [blockOf([ipBlock.cidr]), blockOf(ipBlock.except ?? [])];
  return (address) => within.check(address) && !without.check(address);
}

function blockOf(cidrs: readonly string[]): BlockList {
  const block = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", length = ""] = cidr.split("/");
    const family = isIP(network);
    if (family !== 0 && length !== "")
      block.addSubnet(network, Number(length), family === 6 ? "ipv6" : "ipv4");
  }
  return block;
}
