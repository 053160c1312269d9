import { type ClusterView, type ServiceView, serviceNetwork } from "../cluster-view.ts";
import { type AddressBlock } from "./address-block.ts";
import { type Isolated, isolatedPods } from "./policy-rules.ts";

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
 * Kubernetes has it. One text that replaces everything that was there.
 */
export function rulesetOf(view: ClusterView, { block, dnsPort, moved }: RulesetOptions): string {
  const services = view.services.filter(({ clusterIp }) => clusterIp !== undefined);
  const dns = ["tcp", "udp"].map((protocol) =>
    portChain(`${dnsServiceIp} . ${protocol} . 53`, [
      `meta l4proto ${protocol} dnat ip to ${block.host}:${dnsPort}`,
    ]),
  );
  const offered = [...moved].map(([port, other]) =>
    portChain(`${block.host} . tcp . ${port}`, [
      `meta l4proto tcp dnat ip to ${block.host}:${other}`,
    ]),
  );
  // Of two that claim an address, the name server counts: without it no Service is found.
  const chains = new Map(
    [...services.flatMap(knownPortChains), ...dns, ...offered].map((each) => [each.match, each]),
  );
  const ports = [...chains.values()];
  const endpoints = new Set(
    services.flatMap(({ ports }) => ports.flatMap((port) => port.endpoints.map(({ ip }) => ip))),
  );
  const own = [...endpoints].filter((ip) => block.indexOf(ip) !== undefined);
  const directions = [
    { name: "egress", side: "saddr", pods: isolatedPods(view, "egress") },
    { name: "ingress", side: "daddr", pods: isolatedPods(view, "ingress") },
  ];
  return `table ip pods
delete table ip pods
table ip pods {
${ports.map(({ text }) => text).join("")}
${directions.flatMap(({ name, pods }) => pods.map((pod, i) => isolationChain(`${name}_${i}`, pod))).join("")}
  map services {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { ${ports.map(({ match, chain }) => `${match} : goto ${chain}`).join(", ")} }
  }
  set itself {
    type ipv4_addr . ipv4_addr
    ${own.length > 0 ? `elements = { ${own.map((ip) => `${ip} . ${ip}`).join(", ")} }` : ""}
  }
${directions.map(({ name, pods }) => isolationMap(name, pods)).join("")}
  chain prerouting {
    type nat hook prerouting priority -100; policy accept;
    ip daddr . meta l4proto . th dport vmap @services
  }
  chain postrouting {
    type nat hook postrouting priority 100; policy accept;
    ip saddr . ip daddr @itself snat to ${block.router}
  }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ct state established,related accept
    ip daddr ${serviceNetwork} reject
    iifname "host0" accept
    ip daddr ${block.host} accept
    ip saddr . ip daddr @itself accept
${directions.map(({ name, side }) => `    ip ${side} vmap @${name}\n`).join("")}  }
}
`;
}

interface PortChain {
  match: string;
  chain: string;
  text: string;
}

/** Named by what leads there: the same text, however many other Services come and go. */
function portChain(match: string, rules: readonly string[]): PortChain {
  const chain = `to_${match.replaceAll(/\W+/g, "_")}`;
  return { match, chain, text: chainOf(chain, rules) };
}

/** With thousands of Services, a change is one of a few. */
const known = new WeakMap<ServiceView, PortChain[]>();

function knownPortChains(service: ServiceView): PortChain[] {
  let chains = known.get(service);
  if (!chains) known.set(service, (chains = portChains(service)));
  return chains;
}

function portChains({ clusterIp, ports, affinitySeconds }: ServiceView): PortChain[] {
  return ports.flatMap(({ protocol, port, endpoints }) => {
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

function chainOf(name: string, rules: readonly string[]): string {
  return `  chain ${name} {\n${rules.map((rule) => `    ${rule}\n`).join("")}  }\n`;
}

function isolationChain(name: string, { allowed }: Isolated): string {
  return chainOf(name, [...allowed.map((condition) => `${condition} return`), "drop"]);
}

function isolationMap(name: string, pods: readonly Isolated[]): string {
  const elements = pods.map(({ ip }, i) => `${ip} : jump ${name}_${i}`).join(", ");
  return `  map ${name} {
    type ipv4_addr : verdict
    ${elements ? `elements = { ${elements} }` : ""}
  }
`;
}
