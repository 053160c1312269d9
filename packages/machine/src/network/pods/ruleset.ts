import { type ClusterView, type ServiceView, serviceNetwork } from "../cluster-view.ts";
import { type AddressBlock } from "./address-block.ts";
import { type Elements, type NftTable } from "./nft-tables.ts";
import { contextOf, PolicyRules } from "./policy-rules.ts";

/** Where Pods ask for names, as `kube-dns` of real clusters; led to the node agent's name server. */
export const dnsServiceIp = "10.96.0.10";

export interface RulesetOptions {
  block: AddressBlock;
  /** Where the node agent's name server listens at the machine's address. */
  dnsPort: number;
  /** TCP ports of the machine's address that Pods reach at another port of it. */
  moved: ReadonlyMap<number, number>;
}

/**
 * The router's nftables: Services as kube-proxy has them (a random endpoint, a refusal where there is
 * none), then NetworkPolicies. The machine itself reaches every Pod, and every Pod the machine, as
 * Kubernetes has it. What has not changed since the last time is the same object again.
 */
export class Rulesets {
  readonly #policies = new PolicyRules();

  of(view: ClusterView, { block, dnsPort, moved }: RulesetOptions): NftTable {
    const chains = new Map<string, readonly string[]>();
    const services = new Map<string, string>();
    const add = ({ match, chain, rules }: PortChain) => {
      chains.set(chain, rules);
      services.set(match, `goto ${chain}`);
    };
    const own = new Map<string, string>();
    for (const service of view.services) {
      if (service.clusterIp === undefined) continue;
      for (const each of knownPortChains(service)) add(each);
      for (const { endpoints } of service.ports)
        for (const { ip } of endpoints)
          if (block.indexOf(ip) !== undefined) own.set(`${ip} . ${ip}`, "");
    }
    // Of two that claim an address, the name server counts: without it no Service is found.
    for (const protocol of ["tcp", "udp"]) {
      const rule = `meta l4proto ${protocol} dnat ip to ${block.host}:${dnsPort}`;
      add(portChain(`${dnsServiceIp} . ${protocol} . 53`, [rule]));
    }
    for (const [port, other] of moved) {
      const rule = `meta l4proto tcp dnat ip to ${block.host}:${other}`;
      add(portChain(`${block.host} . tcp . ${port}`, [rule]));
    }
    const sets = new Map<string, Elements>([
      [
        "services",
        {
          kind: "map",
          type: "ipv4_addr . inet_proto . inet_service : verdict",
          elements: services,
        },
      ],
      ["itself", { kind: "set", type: "ipv4_addr . ipv4_addr", elements: own }],
    ]);
    const context = contextOf(view);
    for (const direction of ["egress", "ingress"] as const) {
      const tables = this.#policies.tables(view.policies, context, direction);
      for (const [name, rules] of tables.chains) chains.set(name, rules);
      for (const [name, elements] of tables.sets) sets.set(name, elements);
      const isolated = [...tables.isolated].map(([ip, chain]) => [ip, `jump ${chain}`] as const);
      sets.set(direction, {
        kind: "map",
        type: "ipv4_addr : verdict",
        elements: new Map(isolated),
      });
    }
    return { name: "ip pods", chains, sets, frame: frameOf(block) };
  }
}

/** What one policy lets through must be let through by the other direction's, too: each has a chain of its own. */
function frameOf(block: AddressBlock): string {
  const free = `    ct state established,related accept
    iifname "host0" accept
    ip daddr ${block.host} accept
    ip saddr . ip daddr @itself accept
`;
  return `  chain prerouting {
    type nat hook prerouting priority -100; policy accept;
    ip daddr . meta l4proto . th dport vmap @services
  }
  chain postrouting {
    type nat hook postrouting priority 100; policy accept;
    ip saddr . ip daddr @itself snat to ${block.router}
  }
  chain leaving {
    type filter hook forward priority 0; policy accept;
    ct state established,related accept
    ip daddr ${serviceNetwork} reject
${free}    ip saddr vmap @egress
  }
  chain arriving {
    type filter hook forward priority 1; policy accept;
${free}    ip daddr vmap @ingress
  }
`;
}

interface PortChain {
  match: string;
  chain: string;
  rules: readonly string[];
}

/** Named by what leads there: the same text, however many other Services come and go. */
function portChain(match: string, rules: readonly string[]): PortChain {
  return { match, chain: `to_${match.replaceAll(/\W+/g, "_")}`, rules };
}

/** With thousands of Services, a change is one of a few. */
const known = new WeakMap<ServiceView, PortChain[]>();

function knownPortChains(service: ServiceView): PortChain[] {
  let chains = known.get(service);
  if (!chains) known.set(service, (chains = portChains(service)));
  return chains;
}

function portChains({ clusterIp, ports, affinitySeconds }: ServiceView): PortChain[] {
  return ports.flatMap(({ protocol, port, endpoints: all }) => {
    // The loopback address of a Pod that has not got a network of its own yet leads a caller to itself.
    const endpoints = all.filter(({ ip }) => !ip.startsWith("127."));
    if (endpoints.length === 0) return [];
    const name = protocol.toLowerCase();
    const targets = endpoints.map(({ ip, port }) => `${ip} . ${port}`);
    // The caller's address decides: it keeps its endpoint while the endpoints stay the same.
    const choice = affinitySeconds === undefined ? "numgen random" : "jhash ip saddr";
    const spread = `${choice} mod ${targets.length} map { ${targets.map((target, k) => `${k} : ${target}`).join(", ")} }`;
    const target = targets.length === 1 ? targets[0]?.replace(" . ", ":") : spread;
    return portChain(`${clusterIp} . ${name} . ${port}`, [
      `meta l4proto ${name} dnat ip to ${target}`,
    ]);
  });
}
