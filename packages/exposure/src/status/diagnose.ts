import { type ApiRule, type ApiRuleState, type IstioGateway } from "@spry/function";
import { type ObjectKey, type Service } from "@spry/kube";
import { v1beta1SpecOf } from "../conversion/convert.ts";
import { authenticationOfV1beta1 } from "../conversion/v1beta1-rule.ts";
import { hostsOf } from "../routes/claims.ts";
import {
  gatewayDomain,
  isAnyHttps,
  isHttp,
  isHttps,
  serversFor,
  tlsMode,
} from "../routes/gateway-hosts.ts";
import { certificateName } from "../routes/routes-of.ts";
import { addressOf, serviceProblem } from "../routes/service-address.ts";
import { type Failure, failure } from "../validation/failure.ts";
import { reservedHost } from "../validation/hosts.ts";
import { validateApiRule } from "../validation/validate.ts";
import { type InspectedCertificate, isForHost } from "./certificates.ts";

/** The objects that decide what an APIRule's status says. */
export interface RelatedObjects {
  gatewayOf: (key: ObjectKey) => IstioGateway | undefined;
  serviceOf: (key: ObjectKey) => Service | undefined;
  claims: ReadonlyMap<string, ApiRule>;
  certificates: ReadonlyMap<string, InspectedCertificate>;
  ownCertificates: boolean;
}

export interface Verdict {
  state: ApiRuleState;
  description: string;
}

/** What the original writes in each case (`internal/processing/status/v2alpha1.go`). */
export function diagnose(rule: ApiRule, objects: RelatedObjects): Verdict {
  const { gateway, hosts } = hostsOf(rule, objects.gatewayOf);
  const failures = [...validateApiRule(rule)];
  if (!gateway && failures.length === 0)
    return invalid([failure("spec.gateway", "Could not get specified Gateway")], "");
  if (gateway) {
    failures.push(...serviceFailures(rule, objects.serviceOf));
    for (const [index, host] of hosts.entries()) {
      const message = hostProblem(rule, host.name, gateway, objects);
      if (message) failures.push(failure(hostPath(rule, index), message));
    }
  }
  if (failures.length > 0) return invalid(failures, ".");
  const warnings = gateway ? warningsOf(rule, gateway, objects) : [];
  if (warnings.length > 0) return { state: "Warning", description: warnings.join("\n") };
  return { state: "Ready", description: "Reconciled successfully" };
}

const maxEntries = 3;

function invalid(failures: Failure[], root: string): Verdict {
  const unique = new Map(failures.map((each) => [`${each.path} ${each.message}`, each]));
  const lines = [...unique.values()].map(
    ({ path, message }) => `Attribute '${root}${path}': ${message}`,
  );
  const more = lines.length - maxEntries;
  const shown = lines.slice(0, maxEntries);
  if (more > 0) shown.push(`${more} more error(s)...`);
  return { state: "Error", description: `Validation errors: ${shown.join("\n")}` };
}

function hostPath(rule: ApiRule, index: number): string {
  return v1beta1SpecOf(rule) ? "spec.host" : `spec.hosts[${index}]`;
}

function hostProblem(
  rule: ApiRule,
  name: string | undefined,
  gateway: IstioGateway,
  { claims }: RelatedObjects,
): string | undefined {
  if (name === undefined && gatewayDomain(gateway) === undefined) {
    return "Lowercase RFC 1123 label (short host) is only supported as the APIRule host when selected Gateway has a single host definition matching *.<fqdn> format";
  }
  const reserved = reservedHost(name ?? "");
  if (reserved) return reserved;
  const owner = claims.get(name ?? "");
  if (!owner || owner.metadata.uid === rule.metadata.uid) return undefined;
  const { namespace } = owner.metadata;
  return namespace === rule.metadata.namespace
    ? `Host is occupied by another APIRule: ${owner.metadata.name}`
    : "Host is occupied by an APIRule of another namespace";
}

function serviceFailures(rule: ApiRule, serviceOf: RelatedObjects["serviceOf"]): Failure[] {
  const { namespace = "" } = rule.metadata;
  const { service: common, rules = [] } = v1beta1SpecOf(rule) ?? rule.spec;
  return rules.flatMap(({ service }, index) => {
    if (!service && !common) return [];
    const address = addressOf(service, common, namespace);
    const found = serviceOf(`${address.namespace}/${address.name}`);
    const problem = serviceProblem(found, address, namespace);
    const path = service ? `spec.rules[${index}].service` : "spec.service";
    return problem ? [failure(path, problem)] : [];
  });
}

/** What is served in part: each a sentence. */
function warningsOf(rule: ApiRule, gateway: IstioGateway, objects: RelatedObjects): string[] {
  const { namespace = "" } = rule.metadata;
  const what = `Gateway ${gateway.metadata.namespace}/${gateway.metadata.name}`;
  const hosts = hostsOf(rule, objects.gatewayOf).hosts.flatMap(({ name = "" }) => {
    const servers = serversFor(gateway, name, namespace);
    if (servers.length === 0) return [`${what} has no server for the host ${name}`];
    const secured = servers.find(isHttps);
    if (!secured) {
      const other = servers.find(isAnyHttps);
      if (other)
        return [
          `${what} has no HTTPS server for the host ${name}: TLS mode ${tlsMode(other)} is not supported, use SIMPLE`,
        ];
      if (servers.some(isHttp)) return [];
      return [`${what} has no HTTPS server for the host ${name}`];
    }
    const credential = secured.tls?.credentialName;
    if (!credential) {
      return objects.ownCertificates ? [] : [`${what} names no credentialName for ${name}`];
    }
    const inspected = objects.certificates.get(certificateName(gateway, credential));
    const problem = inspected?.problem;
    if (problem) return [`HTTPS for ${name}: ${problem}`];
    if (inspected?.certificate && !isForHost(inspected.certificate, name))
      return [`HTTPS for ${name}: the certificate ${credential} is for other hosts`];
    return [];
  });
  const refused = (v1beta1SpecOf(rule)?.rules ?? []).flatMap((each, index) => {
    const authentication = authenticationOfV1beta1(each);
    if (authentication.kind !== "refused") return [];
    return [`no request passes spec.rules[${index}]: ${authentication.reason}`];
  });
  return [...hosts, ...refused];
}
