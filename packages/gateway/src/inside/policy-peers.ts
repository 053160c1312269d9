import { BlockList, isIP } from "node:net";
import { matchesLabels, type NetworkPolicy, requirementsOf } from "@spry/kube";

export type Labels = Readonly<Record<string, string>>;
type IngressRule = NonNullable<NonNullable<NetworkPolicy["spec"]>["ingress"]>[number];
type Peer = NonNullable<IngressRule["from"]>[number];

/** Who calls: an address, and the Pod that has it, if any. A Pod that may be anywhere has none. */
export interface Caller {
  address: string | undefined;
  pod: { namespace: string; labels: Labels; namespaceLabels: Labels } | undefined;
}

/** What is called: Pods of these labels, at this port. */
export interface Called {
  namespace: string;
  labels: Labels;
  port: number;
  portName: string | undefined;
}

/** Whether a policy (networking.k8s.io/v1) keeps callers away from Pods, and not only Pods from what they call. */
export function isolates({ spec }: NetworkPolicy): boolean {
  return spec?.policyTypes?.includes("Ingress") ?? true;
}

/** The policies that isolate these Pods from callers. */
export function isolating(policies: Iterable<NetworkPolicy>, called: Called): NetworkPolicy[] {
  return [...policies].filter(
    (policy) =>
      policy.metadata.namespace === called.namespace &&
      isolates(policy) &&
      matchesLabels(requirementsOf(policy.spec?.podSelector ?? {}), called.labels),
  );
}

/** Whether one of the policies admits the caller. */
export function admits(policies: readonly NetworkPolicy[], called: Called, caller: Caller) {
  return policies.some(({ metadata, spec }) =>
    (spec?.ingress ?? []).some(
      ({ from = [], ports = [] }) =>
        (from.length === 0 ||
          from.some((peer) => isPeer(peer, metadata.namespace ?? "", caller))) &&
        (ports.length === 0 || ports.some((port) => isPort(port, called))),
    ),
  );
}

function isPort(
  { port, endPort, protocol = "TCP" }: NonNullable<IngressRule["ports"]>[number],
  called: Called,
): boolean {
  if (protocol !== "TCP") return false;
  if (typeof port === "string") return port === called.portName;
  return port === undefined || (port <= called.port && called.port <= (endPort ?? port));
}

function isPeer(peer: Peer, own: string, { address, pod }: Caller): boolean {
  const { ipBlock, podSelector, namespaceSelector } = peer;
  if (ipBlock) return isWithin(address, [ipBlock.cidr]) && !isWithin(address, ipBlock.except ?? []);
  if (!pod) return false;
  const isNear = namespaceSelector
    ? matchesLabels(requirementsOf(namespaceSelector), pod.namespaceLabels)
    : pod.namespace === own;
  return isNear && matchesLabels(requirementsOf(podSelector ?? {}), pod.labels);
}

function isWithin(address: string | undefined, blocks: readonly string[]): boolean {
  if (address === undefined || isIP(address) === 0) return false;
  const list = new BlockList();
  for (const block of blocks) {
    const [network = "", length = ""] = block.split("/");
    if (isIP(network) === 0 || !/^\d{1,3}$/.test(length)) continue;
    try {
      list.addSubnet(network, Number(length), isIP(network) === 6 ? "ipv6" : "ipv4");
    } catch {
      // Not a block: it has no addresses.
    }
  }
  return list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}
