import {
  knative,
  knativeAnnotations,
  knativeLabels,
  knativeNames,
  type Route,
} from "@spry/function";
import { type ObjectKey, type ReconcileResult } from "@spry/kube";
import { LivingConditions } from "../conditions.ts";
import { type Context, quoted, without, writeStatus } from "./context.ts";
import { domainFor } from "../settings/domain-settings.ts";
import { ensurePlaceholders } from "./placeholder.ts";
import { isRevisionReady } from "./configuration.ts";
import { rolloutAnnotation, rollOut, rolloutMsOf } from "./rollout.ts";
import { clearRouting, syncRouting } from "./routing-state.ts";
import { resolveTraffic, serviceNamesOf } from "./traffic.ts";

const allTrafficAssigned = "AllTrafficAssigned";
const ingressReady = "IngressReady";
const certificateProvisioned = "CertificateProvisioned";
const clusterDomain = "svc.cluster.local";

/**
 * Route → `status.traffic`, by which the gateway divides requests, and the Services by which it is called. A target that
 * cannot get requests leaves the traffic as it is: what has served goes on serving.
 */
export function routeReconciler(context: Context): (key: ObjectKey) => Promise<ReconcileResult> {
  const { client, caches, clock } = context;
  return async (key) => {
    const route = caches.routes.get(key);
    if (!route || route.metadata.deletionTimestamp) {
      await clearRouting(context, key);
      return {};
    }
    const conditions = new LivingConditions(
      [allTrafficAssigned, ingressReady, certificateProvisioned],
      route.status?.conditions,
      clock,
    );
    conditions.markTrue(
      certificateProvisioned,
      "TLSNotEnabled",
      "external-domain-tls is not enabled",
    );
    const { againMs, ...fields } = await reconcile(context, route, conditions);
    const status = { ...route.status, ...fields };
    await writeStatus(client, knative.routes, route, {
      ...status,
      observedGeneration: route.metadata.generation ?? 0,
      conditions: conditions.list,
    });
    const isSettled = conditions.get("Ready")?.status !== "Unknown";
    await syncRouting(context, { ...route, status }, isSettled);
    return againMs === undefined ? {} : { requeueAfterMs: againMs };
  };
}

async function reconcile(
  context: Context,
  route: Route,
  conditions: LivingConditions,
): Promise<NonNullable<Route["status"]> & { againMs?: number | undefined }> {
  const { namespace, name = "" } = route.metadata;
  const url = urlOf(context, route);
  const resolved = resolveTraffic(route, {
    configuration: (each) => context.caches.configurations.get(`${namespace}/${each}`),
    revision: (each) => context.caches.revisions.get(`${namespace}/${each}`),
  });
  if (conditions.get(ingressReady)?.status !== "True")
    conditions.markUnknown(
      ingressReady,
      "IngressNotConfigured",
      "Ingress has not yet been reconciled.",
    );
  if ("problem" in resolved) {
    const { status, reason, message } = resolved.problem;
    conditions.mark(allTrafficAssigned, status, reason, message);
    return { url };
  }
  conditions.markTrue(allTrafficAssigned);
  const foreign = await ensurePlaceholders(context, route, resolved.targets);
  const refused = serviceNamesOf(route, resolved.targets).find((each) =>
    context.places?.hasRefused(`${namespace}/${each}`),
  );
  if (foreign) {
    const message = `There is an existing placeholder Service ${quoted(foreign)} that we do not own.`;
    conditions.markFalse(ingressReady, "NotOwned", message);
  } else if (refused !== undefined) {
    const message = `Callers inside the cluster cannot reach Service ${quoted(refused)}: namespace ${quoted(namespace ?? "")} has reached its limit of addresses at the gateway. Delete Routes or tags that are not needed.`;
    conditions.markFalse(ingressReady, "NoAddressLeft", message);
  } else conditions.markTrue(ingressReady);
  const { clock, settings, caches } = context;
  const rolled = rollOut(route, resolved.targets, {
    durationMs: rolloutMsOf(route, settings),
    now: clock.now(),
    isReady: (revision) => {
      const found = caches.revisions.get(`${namespace}/${revision}`);
      return found !== undefined && isRevisionReady(found);
    },
  });
  if (rolled.state !== undefined)
    conditions.markUnknown(
      ingressReady,
      "RolloutInProgress",
      "A gradual rollout of the latest revision(s) is in progress.",
    );
  const isByHeader = context.settings.features["tag-header-based-routing"] === "Enabled";
  return {
    url,
    annotations: {
      ...without(route.status?.annotations, [knativeAnnotations.tagHeader, rolloutAnnotation]),
      ...(rolled.state === undefined ? {} : { [rolloutAnnotation]: rolled.state }),
      ...(isByHeader ? { [knativeAnnotations.tagHeader]: "true" } : {}),
    },
    address: { url: `http://${name}.${namespace}.${clusterDomain}` },
    againMs: rolled.againMs,
    traffic: rolled.targets.map((target) =>
      target.tag ? { ...target, url: urlOf(context, route, target.tag) } : target,
    ),
  };
}

/** `http://hello.default.localhost:8080`, of a tag `http://blue-hello.default…`. */
function urlOf({ domain, settings }: Context, { metadata }: Route, tag?: string): string {
  const { namespace, name = "", labels } = metadata;
  const host = `${tag ? knativeNames.tagged(tag, name) : name}.${namespace}`;
  if (labels?.[knativeLabels.visibility] === "cluster-local")
    return `http://${host}.${clusterDomain}`;
  const port = domain.port === undefined || domain.port === 80 ? "" : `:${domain.port}`;
  return `http://${host}.${domainFor(settings.domain, labels) ?? domain.name}${port}`;
}
