import {
  type ApiRule,
  type ApiRuleService,
  type CorsPolicy,
  type ExposedHost,
  type ExposedRule,
  type GatewayServer,
  type HostCertificate,
  type IstioGateway,
  type RouteTarget,
} from "@spry/function";
import { keyOf, type ObjectKey, type Service } from "@spry/kube";
import { defaultTimeoutSeconds } from "../bounds.ts";
import { corsPolicyOfV1beta1, v1beta1SpecOf } from "../conversion/convert.ts";
import {
  authenticationOfV1beta1,
  pathOfV1beta1,
  requestOfV1beta1,
} from "../conversion/v1beta1-rule.ts";
import { type ApiRuleV1beta1Spec } from "../conversion/v1beta1.ts";
import { validateApiRule } from "../validation/validate.ts";
import { byKey, claimsOf, hostsOf } from "./claims.ts";
import { isHttp, isHttps, serversFor } from "./gateway-hosts.ts";

export interface RouteOptions {
  /** Whether the platform issues certificates itself, for servers that name none. */
  ownCertificates: boolean;
}

/**
 * What is served under which host, from the objects alone: no time, no order of arrival. An APIRule that is not valid
 * (`validateApiRule`) serves nothing, though it keeps its hosts; a host that no server of its Gateway names is left out.
 */
export function routesOf(
  apiRules: Iterable<ApiRule>,
  services: Iterable<Service>,
  gateways: Iterable<IstioGateway>,
  options: RouteOptions,
): ExposedHost[] {
  const gatewayOf = byKey(gateways);
  const targets = targetsIn(byKey(services));
  const rules = [...apiRules];
  const claims = claimsOf(rules, gatewayOf);
  return rules.flatMap((rule) => {
    const { gateway, hosts } = hostsOf(rule, gatewayOf);
    const own = hosts.filter(({ name }) => name !== undefined && claims.get(name) === rule);
    if (!gateway || own.length === 0 || validateApiRule(rule).length > 0) return [];
    const content = contentOf(rule, targets);
    return own.flatMap(({ name = "" }): ExposedHost[] => {
      const servers = serversFor(gateway, name, rule.metadata.namespace ?? "");
      if (servers.length === 0) return [];
      const certificate = certificateOf(servers, gateway, options);
      return [
        {
          host: name,
          apiRule: keyOf(rule),
          certificate,
          plainHttp: plainHttp(servers),
          ...content,
        },
      ];
    });
  });
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

type Targets = (
  service: ApiRuleService | undefined,
  common: ApiRuleService | undefined,
  namespace: string,
) => RouteTarget;

function targetsIn(serviceOf: (key: ObjectKey) => Service | undefined): Targets {
  return (service, common, namespace) => {
    const address = addressOf(service, common, namespace);
    const found = serviceOf(`${address.namespace}/${address.name}`);
    return { ...address, exists: serviceProblem(found, address) === undefined };
  };
}

export type ServiceAddress = Omit<RouteTarget, "exists">;

/** Of a rule's Service, or else the one for all rules; namespaces fall back to that one's, too (`FindServiceNamespace`). */
export function addressOf(
  service: ApiRuleService | undefined,
  common: ApiRuleService | undefined,
  ownNamespace: string,
): ServiceAddress {
  const { name = "", port = 0 } = service ?? common ?? {};
  return { namespace: service?.namespace ?? common?.namespace ?? ownNamespace, name, port };
}

/** Why a Service cannot receive requests: a sentence, undefined if it can. */
export function serviceProblem(
  service: Service | undefined,
  { namespace, name, port }: ServiceAddress,
): string | undefined {
  const what = `Service ${namespace}/${name}`;
  if (!service) return `${what} does not exist`;
  if (service.spec?.type === "ExternalName")
    return `${what} is of type ExternalName: only Services inside the cluster can be exposed`;
  const ports = service.spec?.ports ?? [];
  if (ports.some((each) => each.port === port)) return undefined;
  const known = ports.map((each) => each.port).join(", ");
  return `${what} does not have port ${port}${known ? ` (it has ${known})` : ""}`;
}

function contentOf(rule: ApiRule, targets: Targets): { rules: ExposedRule[]; cors?: CorsPolicy } {
  const older = v1beta1SpecOf(rule);
  const namespace = rule.metadata.namespace ?? "";
  return older
    ? contentOfV1beta1(older, namespace, targets)
    : contentOfV2(rule, namespace, targets);
}

function contentOfV2({ spec }: ApiRule, namespace: string, targets: Targets) {
  const rules = (spec.rules ?? []).map((rule): ExposedRule => {
    const { path, methods, jwt, request, timeout = spec.timeout } = rule;
    const { authentications = [], authorizations = [] } = jwt ?? {};
    return {
      path: { kind: "template", template: path === "/*" ? "/{**}" : path },
      methods,
      authentication: jwt ? { kind: "jwt", authentications, authorizations } : { kind: "none" },
      target: targets(rule.service, spec.service, namespace),
      timeoutMs: (timeout ?? defaultTimeoutSeconds) * 1_000,
      requestHeaders: request?.headers ?? {},
      requestCookies: request?.cookies ?? {},
    };
  });
  return { rules, ...(spec.corsPolicy ? { cors: spec.corsPolicy } : {}) };
}

/** What v1beta1 applies without a corsPolicy (the original's `04-70-changes-in-apirule-v2.md`). */
const corsOfV1beta1: CorsPolicy = {
  allowOrigins: [{ regex: ".*" }],
  allowMethods: ["GET", "POST", "PUT", "DELETE", "PATCH"],
  allowHeaders: ["Authorization", "Content-Type", "*"],
};

function contentOfV1beta1(older: ApiRuleV1beta1Spec, namespace: string, targets: Targets) {
  const rules = (older.rules ?? []).map((rule): ExposedRule => {
    const request = requestOfV1beta1(rule.mutators);
    const timeout = rule.timeout ?? older.timeout ?? defaultTimeoutSeconds;
    return {
      path: pathOfV1beta1(rule.path),
      methods: rule.methods,
      authentication: authenticationOfV1beta1(rule),
      target: targets(rule.service, older.service, namespace),
      timeoutMs: timeout * 1_000,
      requestHeaders: request?.headers ?? {},
      requestCookies: request?.cookies ?? {},
    };
  });
  return { rules, cors: corsPolicyOfV1beta1(older) ?? corsOfV1beta1 };
}
