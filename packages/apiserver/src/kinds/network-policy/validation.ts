import { type LabelSelector } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import {
  checkCidr,
  checkOneOf,
  checkPort,
  checkPortOrName,
  checkSelector,
} from "../../resources/validation/formats.ts";

/** `pkg/apis/networking/validation`, NetworkPolicies. */

export interface PolicySpec {
  podSelector?: LabelSelector;
  policyTypes?: string[];
  ingress?: PolicyRule[];
  egress?: PolicyRule[];
}
interface PolicyRule {
  ports?: { protocol?: string; port?: number | string; endPort?: number }[];
  from?: Peer[];
  to?: Peer[];
}
interface Peer {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: { cidr?: string; except?: string[] };
}

export function validatePolicy(spec: PolicySpec, errors: FieldErrors): void {
  checkSelector(spec.podSelector, "spec.podSelector", errors);
  for (const direction of ["ingress", "egress"] as const) {
    for (const [index, rule] of (spec[direction] ?? []).entries()) {
      const path = `spec.${direction}[${index}]`;
      for (const [at, port] of (rule.ports ?? []).entries())
        validatePort(port, `${path}.ports[${at}]`, errors);
      const peers = direction === "ingress" ? "from" : "to";
      for (const [at, peer] of (rule[peers] ?? []).entries())
        validatePeer(peer, `${path}.${peers}[${at}]`, errors);
    }
  }
  const { policyTypes = [] } = spec;
  if (policyTypes.length > 2) {
    const detail = "may not specify more than two policyTypes";
    return errors.invalid("spec.policyTypes", policyTypes, detail);
  }
  for (const [index, type] of policyTypes.entries())
    checkOneOf(type, ["Ingress", "Egress"], `spec.policyTypes[${index}]`, errors);
}

type Port = NonNullable<PolicyRule["ports"]>[number];

function validatePort({ protocol, port, endPort }: Port, path: string, errors: FieldErrors): void {
  checkOneOf(protocol, ["TCP", "UDP", "SCTP"], `${path}.protocol`, errors);
  if (port === undefined || typeof port === "string") {
    const state = port === undefined ? "not specified" : "non-numeric";
    if (endPort !== undefined)
      errors.invalid(`${path}.endPort`, endPort, `may not be specified when \`port\` is ${state}`);
    if (port !== undefined) checkPortOrName(port, `${path}.port`, errors);
    return;
  }
  checkPort(port, `${path}.port`, errors);
  if (endPort === undefined) return;
  if (endPort < port)
    errors.invalid(`${path}.endPort`, port, "must be greater than or equal to `port`");
  checkPort(endPort, `${path}.endPort`, errors);
}

function validatePeer(peer: Peer, path: string, errors: FieldErrors): void {
  const { podSelector, namespaceSelector, ipBlock } = peer;
  if (podSelector) checkSelector(podSelector, `${path}.podSelector`, errors);
  if (namespaceSelector) checkSelector(namespaceSelector, `${path}.namespaceSelector`, errors);
  if (ipBlock) {
    const { cidr = "", except = [] } = ipBlock;
    if (cidr === "") errors.required(`${path}.ipBlock.cidr`);
    else checkCidr(cidr, `${path}.ipBlock.cidr`, errors);
    for (const [index, each] of except.entries())
      checkCidr(each, `${path}.ipBlock.except[${index}]`, errors);
  }
  const count = [podSelector, namespaceSelector, ipBlock].filter(Boolean).length;
  if (count === 0) errors.required(path, "must specify a peer");
  else if (count > 1 && ipBlock)
    errors.forbidden(path, "may not specify both ipBlock and another peer");
}
