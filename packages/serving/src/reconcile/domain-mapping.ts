import {
  type DomainMapping,
  domainMappingConditions,
  domainMappings,
  knative,
} from "@spry/function";
import { getCondition, isConditionTrue, keyOf, type ObjectKey } from "@spry/kube";
import { byHost } from "../caches.ts";
import { LivingConditions } from "../conditions.ts";
import { type Context, quoted, writeStatus } from "./context.ts";

const { certificateProvisioned, domainClaimed, ingressReady, referenceResolved } =
  domainMappingConditions;
/** Hosts of these domains belong to the Services and Routes that they name. */
const ownSuffixes = [".localhost", ".svc.cluster.local", ".svc"];
const clusterDomain = "svc.cluster.local";

/**
 * DomainMapping → a host at the gateway (knative.dev/serving/pkg/reconciler/domainmapping). Of several with one name, in
 * different namespaces, the first has the host until it is deleted: there are no ClusterDomainClaims.
 */
export function domainMappingReconciler(context: Context): (key: ObjectKey) => Promise<void> {
  const { client, caches, clock } = context;
  return async (key) => {
    const mapping = caches.domainMappings.get(key);
    if (!mapping || mapping.metadata.deletionTimestamp) return;
    const { name = "" } = mapping.metadata;
    const conditions = new LivingConditions(
      Object.values(domainMappingConditions),
      mapping.status?.conditions,
      clock,
    );
    markCertificate(conditions, mapping);
    markClaim(context, conditions, mapping);
    const address = markReference(context, conditions, mapping);
    if (conditions.isTrue(domainClaimed) && address) conditions.markTrue(ingressReady);
    else
      conditions.markUnknown(
        ingressReady,
        "IngressNotConfigured",
        "Ingress has not yet been reconciled.",
      );
    const port = context.domain.port;
    await writeStatus(client, domainMappings, mapping, {
      url: `http://${name}${port === undefined || port === 80 ? "" : `:${port}`}`,
      ...(address ? { address: { url: address } } : {}),
      observedGeneration: mapping.metadata.generation ?? 0,
      conditions: conditions.list,
    });
  };
}

function markCertificate(conditions: LivingConditions, { spec }: DomainMapping): void {
  if (spec.tls)
    conditions.markFalse(
      certificateProvisioned,
      "TLSNotSupported",
      "A DomainMapping cannot bring a certificate here. Expose the Service by an APIRule for HTTPS, and remove spec.tls.",
    );
  else
    conditions.markTrue(
      certificateProvisioned,
      "TLSNotEnabled",
      "external-domain-tls is not enabled",
    );
}

function markClaim(context: Context, conditions: LivingConditions, mapping: DomainMapping): void {
  const { name = "", namespace = "" } = mapping.metadata;
  const suffix = [
    ...ownSuffixes,
    ...context.settings.domain.domains.map((each) => `.${each.name}`),
  ].find((each) => `.${name}`.endsWith(each));
  if (suffix)
    return conditions.markFalse(
      domainClaimed,
      "DomainReserved",
      `Hosts that end in ${quoted(suffix)} are those of Services and Routes: choose another domain.`,
    );
  const holder = holderOf(context, name);
  if (!holder || keyOf(holder) === keyOf(mapping)) return conditions.markTrue(domainClaimed);
  conditions.markFalse(
    domainClaimed,
    "DomainAlreadyClaimed",
    `The domain name is already in use by another DomainMapping, namespace ${quoted(namespace)} does not own ${quoted(name)}.`,
  );
}

/** A DomainMapping keeps the host that it has; a free host goes to the oldest one. */
function holderOf({ caches }: Context, host: string): DomainMapping | undefined {
  const all = caches.domainMappings
    .byIndex(byHost, host)
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .toSorted((a, b) => {
      const [x, y] = [a, b].map(
        (each) => `${each.metadata.creationTimestamp} ${each.metadata.namespace}`,
      );
      return (x ?? "") < (y ?? "") ? -1 : 1;
    });
  return all.find(({ status }) => isConditionTrue(status?.conditions, domainClaimed)) ?? all[0];
}

/** The address of what it refers to, once that is ready to be called. */
function markReference(
  { caches }: Context,
  conditions: LivingConditions,
  { metadata, spec }: DomainMapping,
): string | undefined {
  const { kind, name, apiVersion = "", namespace = metadata.namespace } = spec.ref;
  const failed = (message: string) => {
    conditions.markFalse(referenceResolved, "ResolveFailed", message);
    return undefined;
  };
  const isOurs = apiVersion.startsWith(`${knative.services.group}/`);
  if (!isOurs || !["Service", "Route"].includes(kind))
    return failed(
      `${kind} of ${quoted(apiVersion)} cannot be referred to, only Service and Route of ${knative.services.group}.`,
    );
  if (namespace !== metadata.namespace)
    return failed("A DomainMapping can refer to its own namespace only.");
  const found = (kind === "Service" ? caches.services : caches.routes).get(`${namespace}/${name}`);
  if (!found)
    return failed(`${kind.toLowerCase()}s.${knative.services.group} ${quoted(name)} not found`);
  const { address } = found.status ?? {};
  if (!address?.url) {
    const ready = getCondition(found.status?.conditions, "Ready");
    conditions.markUnknown(
      referenceResolved,
      "ResolveFailed",
      `address not set for ${kind} ${quoted(name)}: ${ready?.message ?? "it is not ready yet"}`,
    );
    return undefined;
  }
  conditions.markTrue(referenceResolved);
  return `http://${name}.${namespace}.${clusterDomain}`;
}
