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

/**
 * On a Service, ours: the namespaces whose APIRules may expose it, separated by commas, or `*` for all. Those of its own
 * namespace always may. The original lets anyone expose any Service; here namespaces are tenants (docs/adr/0020).
 */
export const exposableFrom = "gateway.kyma-project.io/exposable-from";

/** Why a Service cannot receive requests of an APIRule of this namespace: a sentence, undefined if it can. */
export function serviceProblem(
  service: Service | undefined,
  { namespace, name, port }: ServiceAddress,
  ruleNamespace: string,
): string | undefined {
  const what = `Service ${namespace}/${name}`;
  if (namespace !== ruleNamespace && !permits(service, ruleNamespace))
    // The same where it does not exist: another namespace's Services are not to be found out.
    return `${what} is not exposable from namespace ${ruleNamespace}: annotate it with ${exposableFrom}: ${ruleNamespace}`;
  if (!service) return `${what} does not exist`;
  if (service.spec?.type === "ExternalName")
    return `${what} is of type ExternalName: only Services inside the cluster can be exposed`;
  const ports = service.spec?.ports ?? [];
  if (ports.some((each) => each.port === port)) return undefined;
  const known = ports.map((each) => each.port).join(", ");
  return `${what} does not have port ${port}${known ? ` (it has ${known})` : ""}`;
}

/** Whether a Service permits APIRules of another namespace to expose it, or to fetch keys from it. */
export function permits(service: Service | undefined, namespace: string): boolean {
  const permitted = service?.metadata.annotations?.[exposableFrom] ?? "";
  return permitted.split(",").some((each) => each.trim() === namespace || each.trim() === "*");
}
