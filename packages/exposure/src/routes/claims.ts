import { type ApiRule, type ApiRuleSpec, type IstioGateway } from "@spry/function";
import { keyOf, type ObjectKey } from "@spry/kube";
import { specOf, v1beta1SpecOf } from "../conversion/convert.ts";
import { reservedHost } from "../validation/hosts.ts";
import { fullHost, serversFor } from "./gateway-hosts.ts";

/**
 * Which APIRule each host belongs to: the one that has had it the longest (`heldSince`). Of several in one second it is the one
 * whose status says so, or else was created first, or else has the smaller uid. Every reader of the same objects comes to the
 * same result. An APIRule that is being deleted, or whose Gateway does not exist or serve the host for its namespace, has none.
 */
export function claimsOf(
  rules: Iterable<ApiRule>,
  gatewayOf: (key: ObjectKey) => IstioGateway | undefined,
): Map<string, ApiRule> {
  const claims = new Map<string, ApiRule>();
  for (const rule of rules) {
    if (rule.metadata.deletionTimestamp) continue;
    const { hosts, gateway } = hostsOf(rule, gatewayOf);
    if (!gateway) continue;
    for (const { name } of hosts) {
      if (name === undefined || reservedHost(name)) continue;
      // A host that the Gateway does not serve for this namespace is not this rule's to take from others.
      if (serversFor(gateway, name, rule.metadata.namespace ?? "").length === 0) continue;
      const owner = claims.get(name);
      if (!owner || precedes(rule, owner, name)) claims.set(name, rule);
    }
  }
  return claims;
}

/**
 * Since when a host belongs to an APIRule (RFC 3339), by its status: an old one that is edited takes no host from others. One
 * without a status has named its hosts since it was created. Undefined: the host is not known to belong to it.
 */
export function heldSince({ metadata, status }: ApiRule, host: string): string | undefined {
  if (!status?.hosts) return metadata.creationTimestamp;
  return status.hosts.find(({ name }) => name === host)?.since;
}

function precedes(one: ApiRule, other: ApiRule, host: string): boolean {
  const theirs = precedence(other, host);
  const differs = precedence(one, host).findIndex((mine, at) => mine !== theirs[at]);
  return differs >= 0 && (precedence(one, host)[differs] ?? "") < (theirs[differs] ?? "");
}

function precedence(rule: ApiRule, host: string): string[] {
  const { creationTimestamp = "", uid = "" } = rule.metadata;
  // After every time.
  const unknown = "~";
  // Times are whole seconds: what is recorded was there before what is yet to be.
  const recorded = rule.status?.hosts ? "a" : "b";
  return [heldSince(rule, host) ?? unknown, recorded, creationTimestamp, uid];
}

export interface RuleHosts {
  gateway: IstioGateway | undefined;
  /** In the order of the spec; `name` is undefined for a short host without a domain. */
  hosts: { written: string; name: string | undefined }[];
}

/** The hosts of an APIRule by their full names. */
export function hostsOf(
  rule: ApiRule,
  gatewayOf: (key: ObjectKey) => IstioGateway | undefined,
): RuleHosts {
  let spec = specs.get(rule);
  if (!spec) specs.set(rule, (spec = currentSpec(rule)));
  const gateway = spec.gateway === undefined ? undefined : gatewayOf(spec.gateway);
  const known = results.get(rule);
  if (known && known.gateway === gateway) return known;
  const hosts = (spec.hosts ?? []).map((written) => ({
    written,
    name: gateway ? fullHost(written, gateway) : undefined,
  }));
  const result = { gateway, hosts };
  results.set(rule, result);
  return result;
}

/** Objects do not change: what follows from them is kept as long as they are. */
const specs = new WeakMap<ApiRule, ApiRuleSpec>();
const results = new WeakMap<ApiRule, RuleHosts>();

/** The spec by which hosts, Gateway and Services are found, of either way to write an APIRule. */
function currentSpec(rule: ApiRule): ApiRuleSpec {
  const older = v1beta1SpecOf(rule);
  return older ? specOf(older, rule.metadata.namespace ?? "") : rule.spec;
}

export const byKey = <T extends { metadata: { name?: string; namespace?: string } }>(
  objects: Iterable<T>,
): ((key: ObjectKey) => T | undefined) => {
  const map = new Map<ObjectKey, T>();
  for (const object of objects) map.set(keyOf(object), object);
  return (key) => map.get(key);
};
