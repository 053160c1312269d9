import { clusterDomain, type ServiceView } from "../cluster-view.ts";
import {
  addressData,
  type Answer,
  recordTypes,
  responseCodes,
  serviceData,
  writeName,
} from "./message.ts";

/** Short: a Service may be made, or lose its Pods, at any moment. */
const ttl = 5;
const maxAliases = 8;

/** What a name leads to; `alias` is a name that another server has to resolve. */
export interface ZoneReply {
  code: number;
  answers: Answer[];
  authority?: Answer[];
  alias?: string | undefined;
}

/**
 * The names of a cluster (Kubernetes DNS-Based Service Discovery, version 1.1.0): `<service>.<ns>.svc`,
 * `<host>.<service>.<ns>.svc` and `_<port>._<protocol>.<service>.<ns>.svc` of it, `<a-b-c-d>.<ns>.pod`,
 * and the names of Services' addresses.
 */
export class ClusterZone {
  #services = new Map<string, ServiceView>();
  #byAddress = new Map<string, ServiceView>();

  update(services: readonly ServiceView[]): void {
    this.#services = new Map(services.map((each) => [nameOf(each), each]));
    this.#byAddress = new Map(
      services.flatMap((each) => (each.clusterIp === undefined ? [] : [[each.clusterIp, each]])),
    );
  }

  /** Undefined for names that are none of the cluster's. */
  answer(name: string, type: number): ZoneReply | undefined {
    const reverse = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\.in-addr\.arpa$/.exec(name);
    if (reverse) return this.#reverse(name, reverse.slice(1, 5).reverse().join("."));
    if (name !== clusterDomain && !name.endsWith(`.${clusterDomain}`)) return undefined;
    const labels = name.slice(0, -clusterDomain.length - 1).split(".");
    const found = this.#find(name, labels, type);
    const authority = [startOfAuthority()];
    if (!found) return { code: responseCodes.nameError, answers: [], authority };
    return found.answers.length > 0 ? found : { ...found, authority };
  }

  #find(name: string, labels: readonly string[], type: number): ZoneReply | undefined {
    const kind = labels.at(-1);
    const namespace = labels.at(-2) ?? "";
    const rest = labels.slice(0, -2);
    if (kind === "pod" && rest.length === 1)
      return addresses(name, type, podAddress(rest[0] ?? ""));
    if (kind !== "svc") return undefined;
    const service = this.#services.get(`${rest.at(-1)}.${namespace}`);
    if (!service) return undefined;
    const before = rest.slice(0, -1);
    if (before.length === 0) return this.#service(name, service, type);
    if (before.length === 1) {
      const ips = service.addresses.flatMap(({ hostname, ip }) =>
        hostname === before[0] ? ip : [],
      );
      return ips.length > 0 && service.clusterIp === undefined
        ? addresses(name, type, ips)
        : undefined;
    }
    return before.length === 2 ? ports(name, service, before, type) : undefined;
  }

  #service(name: string, service: ServiceView, type: number): ZoneReply {
    const { externalName, clusterIp } = service;
    if (externalName === undefined) {
      const ips = clusterIp ? [clusterIp] : service.addresses.map(({ ip }) => ip);
      return addresses(name, type, [...new Set(ips)]);
    }
    return this.#alias(name, externalName.replace(/\.$/, "").toLowerCase(), type);
  }

  /** With what it stands for, if that is the cluster's. */
  #alias(name: string, target: string, type: number, depth = 0): ZoneReply {
    const own = { name, type: recordTypes.CNAME, ttl, data: writeName(target) };
    const isLast = type === recordTypes.CNAME || depth === maxAliases;
    const rest = isLast ? undefined : this.answer(target, type);
    if (isLast) return { code: responseCodes.none, answers: [own] };
    if (!rest) return { code: responseCodes.none, answers: [own], alias: target };
    return { ...rest, answers: [own, ...rest.answers] };
  }

  #reverse(name: string, address: string): ZoneReply | undefined {
    const owner = this.#byAddress.get(address);
    if (owner === undefined) return undefined;
    const answer = { name, type: recordTypes.PTR, ttl, data: writeName(fullName(owner)) };
    return { code: responseCodes.none, answers: [answer] };
  }
}

const fullName = ({ name, namespace }: ServiceView) => `${name}.${namespace}.svc.${clusterDomain}`;

/** With thousands of Services, a change is one of a few. */
const names = new WeakMap<ServiceView, string>();

function nameOf(service: ServiceView): string {
  let name = names.get(service);
  if (name === undefined) names.set(service, (name = `${service.name}.${service.namespace}`));
  return name;
}

function addresses(name: string, type: number, ips: readonly string[]): ZoneReply {
  const isWanted = type === recordTypes.A || type === recordTypes.ANY;
  const answers = isWanted
    ? ips.map((ip) => ({ name, type: recordTypes.A, ttl, data: addressData(ip) }))
    : [];
  return { code: responseCodes.none, answers };
}

function ports(
  name: string,
  service: ServiceView,
  [portName = "", protocol = ""]: readonly string[],
  type: number,
): ZoneReply | undefined {
  const wanted = service.ports.filter(
    (port) => `_${port.name}` === portName && `_${port.protocol.toLowerCase()}` === protocol,
  );
  if (wanted.length === 0) return undefined;
  if (type !== recordTypes.SRV) return { code: responseCodes.none, answers: [] };
  const target = fullName(service);
  const answers = wanted.flatMap(({ port, endpoints }) => {
    if (service.clusterIp !== undefined) return [serviceData(port, target)];
    return endpoints.map((endpoint) => {
      const host = service.addresses.find(({ ip }) => ip === endpoint.ip)?.hostname;
      return serviceData(endpoint.port, host === undefined ? target : `${host}.${target}`);
    });
  });
  return {
    code: responseCodes.none,
    answers: answers.map((data) => ({ name, type: recordTypes.SRV, ttl, data })),
  };
}

function podAddress(label: string): string[] {
  const parts = label.split("-");
  const isAddress =
    parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256);
  return isAddress ? [parts.join(".")] : [];
}

/** Says for how long a negative response may be cached (RFC 2308). */
function startOfAuthority(): Answer {
  const numbers = Buffer.alloc(20);
  [1, 7200, 1800, 86_400, ttl].forEach((value, i) => numbers.writeUInt32BE(value, i * 4));
  const names = [`ns.dns.${clusterDomain}`, `hostmaster.${clusterDomain}`].map(writeName);
  return {
    name: clusterDomain,
    type: recordTypes.SOA,
    ttl,
    data: Buffer.concat([...names, numbers]),
  };
}
