import { type ApiRuleService, type RouteTarget } from "@spry/function";
import { type Service } from "@spry/kube";

/** Which port of which Service. */
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
