import {
  type ApiRule,
  type ExposedHost,
  type GatewayServer,
  type HostCertificate,
  type IstioGateway,
} from "@spry/function";
import { keyOf, type ObjectKey, type Service } from "@spry/kube";
import { validateApiRule } from "../validation/validate.ts";
import { byKey, claimsOf, hostsOf } from "./claims.ts";
import { isHttp, isHttps, serversFor } from "./gateway-hosts.ts";
import { contentOf } from "./rule-content.ts";
import { type ServiceAddress, serviceProblem } from "./service-address.ts";

export interface RouteOptions {
  /** Whether the platform issues certificates itself, for servers that name none. */
  ownCertificates: boolean;
}

/**
 * What is served under which host, from the objects alone: no time, no order of arrival. An APIRule that is not valid
 * (`validateApiRule`) serves nothing, though it keeps its hosts; a host that no server of its Gateway names is left out.
 *
 * Objects are expected not to change. What the same objects have led to before is the same object again, so that a change
 * of one APIRule among thousands costs little, here and for callers that keep something for each host.
 */
export function routesOf(
  apiRules: Iterable<ApiRule>,
  services: Iterable<Service>,
  gateways: Iterable<IstioGateway>,
  options: RouteOptions,
): ExposedHost[] {
  const gatewayOf = byKey(gateways);
  const serviceOf = byKey(services);
  const rules = [...apiRules];
  const claims = claimsOf(rules, gatewayOf);
  return rules.flatMap((rule) => {
    const { gateway, hosts } = hostsOf(rule, gatewayOf);
    if (!gateway) return [];
    const own = hosts.flatMap(({ name = "" }) => (claims.get(name) === rule ? [name] : []));
    if (own.length === 0) return [];
    const known = results.get(rule);
    if (known && isCurrent(known, gateway, own, serviceOf, options)) return known.hosts;
    const result = compute(rule, gateway, own, serviceOf, options);
    results.set(rule, result);
    return result.hosts;
  });
}

/** What an APIRule has led to, and everything that it followed from. */
interface Result {
  gateway: IstioGateway;
  own: string[];
  ownCertificates: boolean;
  services: Map<ObjectKey, Service | undefined>;
  hosts: ExposedHost[];
}

const results = new WeakMap<ApiRule, Result>();

type ServiceOf = (key: ObjectKey) => Service | undefined;

function isCurrent(
  known: Result,
  gateway: IstioGateway,
  own: string[],
  serviceOf: ServiceOf,
  { ownCertificates }: RouteOptions,
): boolean {
  if (known.gateway !== gateway || known.ownCertificates !== ownCertificates) return false;
  if (known.own.length !== own.length || known.own.some((name, n) => name !== own[n])) return false;
  for (const [key, service] of known.services) if (serviceOf(key) !== service) return false;
  return true;
}

function compute(
  rule: ApiRule,
  gateway: IstioGateway,
  own: string[],
  serviceOf: ServiceOf,
  options: RouteOptions,
): Result {
  const services: Result["services"] = new Map();
  const result = { gateway, own, ownCertificates: options.ownCertificates, services };
  const { namespace = "" } = rule.metadata;
  if (validateApiRule(rule).length > 0) return { ...result, hosts: [] };
  const content = contentOf(rule, (address: ServiceAddress) => {
    const key = `${address.namespace}/${address.name}`;
    const service = serviceOf(key);
    services.set(key, service);
    return { ...address, exists: serviceProblem(service, address, namespace) === undefined };
  });
  const hosts = own.flatMap((host): ExposedHost[] => {
    const servers = serversFor(gateway, host, namespace);
    if (servers.length === 0) return [];
    const certificate = certificateOf(servers, gateway, options);
    return [{ host, apiRule: keyOf(rule), certificate, plainHttp: plainHttp(servers), ...content }];
  });
  return { ...result, hosts };
}

/** In the Secret of collected certificates, a certificate's entries begin with this. */
export function certificateName(gateway: IstioGateway, credentialName: string): string {
  return `${gateway.metadata.namespace}.${credentialName}`;
}

function certificateOf(
  servers: GatewayServer[],
  gateway: IstioGateway,
  { ownCertificates }: RouteOptions,
): HostCertificate {
  const secured = servers.find(isHttps);
  if (!secured) return { kind: "missing" };
  const name = secured.tls?.credentialName;
  if (name) return { kind: "collected", name: certificateName(gateway, name) };
  return { kind: ownCertificates ? "own" : "missing" };
}

function plainHttp(servers: GatewayServer[]): ExposedHost["plainHttp"] {
  const plain = servers.find(isHttp);
  if (!plain) return "refuse";
  return plain.tls?.httpsRedirect ? "redirect" : "serve";
}
