import { type ApiRule, apiRules, istioGateways } from "@spry/function";
import { type KubeClient } from "@spry/kube";
import { hostUrls } from "./host-urls.ts";

/**
 * The first URL under which an APIRule of a Function's namespace exposes it; undefined if none does, or if APIRules are
 * not served, or the user may not read them.
 */
export async function exposedUrl(
  client: KubeClient,
  { namespace, name }: { namespace: string; name: string },
  gatewayTls: URL | undefined,
): Promise<string | undefined> {
  const { items } = await client.list(apiRules, { namespace }).catch(() => ({ items: [] }));
  for (const rule of items) {
    if (rule.status?.state !== "Ready" || !leadsTo(rule, namespace, name)) continue;
    const [inNamespace, gatewayName = ""] = (rule.spec.gateway ?? "").split("/");
    const where = { namespace: inNamespace ?? "", name: gatewayName };
    const gateway = await client.get(istioGateways, where).catch(() => undefined);
    const [url] = gateway ? hostUrls(rule.spec.hosts ?? [], gateway, gatewayTls) : [];
    // A wildcard host is not an address.
    if (url && !url.includes("*")) return url;
  }
  return undefined;
}

function leadsTo({ spec }: ApiRule, namespace: string, name: string): boolean {
  const services = [spec.service, ...(spec.rules ?? []).map(({ service }) => service)];
  return services.some(
    (each) => each?.name === name && (each.namespace ?? namespace) === namespace,
  );
}
