import { knative, knativeLabels } from "@spry/function";
import {
  type Clock,
  Controller,
  keyOf,
  type KubeClient,
  type KubeObject,
  type Logger,
  type ObjectKey,
  silentLogger,
  sleep,
  systemClock,
} from "@spry/kube";
import { byHost, byReference, byTarget, type Caches, createCaches, routesOf } from "./caches.ts";
import { type GatewayAddressing, type ServingOptions } from "./options.ts";
import { configurationReconciler } from "./reconcile/configuration.ts";
import { type Context } from "./reconcile/context.ts";
import { domainMappingReconciler } from "./reconcile/domain-mapping.ts";
import { gatewaySliceReconciler, serviceKeyOf } from "./reconcile/gateway-slice.ts";
import { Places } from "./reconcile/places.ts";
import { isInitialized, revisionReconciler } from "./reconcile/revision.ts";
import { routeReconciler } from "./reconcile/route.ts";
import { serviceReconciler } from "./reconcile/service.ts";
import { CountsClient } from "./scaler/counts-client.ts";
import { Scaler } from "./scaler/scaler.ts";
import { SettingsWatch } from "./settings/settings.ts";

const workers = 4;
const addressesCheckMs = 1_000;
const reportAfterMs = 250;

/**
 * Serves Knative Services until the signal is aborted; resolves when the passes under way have ended. The definitions are
 * installed (`installServing`). One instance at a time may run in a cluster: leader election is the caller's.
 */
export async function startServing(options: ServingOptions): Promise<void> {
  const { client, signal, clock = systemClock, log = silentLogger } = options;
  const caches = createCaches(client, clock, log);
  const settings = new SettingsWatch(client, clock, log);
  const informers = Object.values(caches) as unknown as {
    synced: Promise<void>;
    run(signal: AbortSignal): Promise<void>;
  }[];
  const running = [...informers, settings].map((each) => each.run(signal));
  const synced = Promise.all([...informers, settings].map((each) => each.synced));
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  // Judging from half a picture would create again what is already there.
  await Promise.race([synced, aborted]);
  if (signal.aborted) return void (await Promise.all(running));

  const { domain, resolveDigest } = options;
  const context: Context = {
    client,
    caches,
    settings: settings.current,
    clock,
    log,
    domain,
    resolveDigest,
    places: options.callers && new Places(options.callers.kind, options.maxPlaces),
  };
  const controllers = createControllers(context);
  const slices = options.callers
    ? startSlices(context, options.callers, controllers.routes, signal)
    : [];
  const scaling = startScaler({ ...options, client, clock, log }, caches, settings);
  settings.onChange(() => {
    for (const key of caches.revisions.keys()) controllers.revisions.enqueue(key);
    // Their domains, and what their requests may name tags by.
    for (const key of caches.routes.keys()) controllers.routes.enqueue(key);
    for (const key of caches.domainMappings.keys()) controllers.mappings.enqueue(key);
    for (const key of caches.configurations.keys()) controllers.configurations.enqueue(key);
  });
  await Promise.all([
    ...Object.values(controllers).map((controller) => controller.run(signal)),
    ...slices,
    ...scaling,
    ...running,
  ]);
}

function createControllers(context: Context) {
  const { caches, clock, log } = context;
  const create = (
    name: string,
    reconcile: (key: ObjectKey) => Promise<{ requeueAfterMs?: number } | void>,
  ) => new Controller({ name, reconcile, workers, clock, log });
  const services = create("kservices", serviceReconciler(context))
    .watch(caches.services)
    .watchOwned(caches.configurations, knative.services)
    .watchOwned(caches.routes, knative.services);
  const configurations = create("configurations", configurationReconciler(context))
    .watch(caches.configurations)
    .watchOwned(caches.revisions, knative.configurations);
  const revisions = create("revisions", revisionReconciler(context))
    .watch(caches.revisions)
    .watchOwned(caches.coreServices, knative.revisions);
  const onWorkload = ({ object }: { object: KubeObject }) => {
    const name = object.metadata.labels?.[knativeLabels.revision];
    if (!name) return;
    const key = `${object.metadata.namespace}/${name}`;
    const revision = caches.revisions.get(key);
    // What has been ready before is reported a moment later: a cold start is not held up by writes about it.
    if (revision && isInitialized(revision)) revisions.queue.addAfter(key, reportAfterMs);
    else revisions.enqueue(key);
  };
  caches.deployments.onChange(onWorkload);
  caches.pods.onChange(onWorkload);
  // Those that lead to it, and those that name it before it is there.
  const routesTo = (object: KubeObject) => [
    ...routesOf(object).map((name) => `${object.metadata.namespace}/${name}`),
    ...caches.routes.byIndex(byTarget, keyOf(object)).map((route) => keyOf(route)),
  ];
  const routes = create("routes", routeReconciler(context))
    .watch(caches.routes)
    .watch(caches.configurations, routesTo)
    .watch(caches.revisions, routesTo)
    .watchOwned(caches.coreServices, knative.routes);
  const mappedTo = (object: KubeObject) =>
    caches.domainMappings.byIndex(byReference, keyOf(object)).map((mapping) => keyOf(mapping));
  // One that is deleted, or changes, may leave its host to another one.
  const ofHost = ({ metadata }: KubeObject) =>
    caches.domainMappings.byIndex(byHost, metadata.name ?? "").map((mapping) => keyOf(mapping));
  const mappings = create("domainmappings", domainMappingReconciler(context))
    .watch(caches.domainMappings)
    .watch(caches.domainMappings, ofHost)
    .watch(caches.services, mappedTo)
    .watch(caches.routes, mappedTo);
  return { services, configurations, revisions, routes, mappings };
}

function startSlices(
  context: Context,
  addressing: GatewayAddressing,
  routes: Controller,
  signal: AbortSignal,
): Promise<void>[] {
  const { caches, clock, log, places = new Places(addressing.kind) } = context;
  const slices = gatewaySliceReconciler(context, addressing, places, {
    service: (key) => controller.enqueue(key),
    route: (key) => routes.enqueue(key),
  });
  slices.restore();
  const reconcile = (key: ObjectKey) => slices.reconcile(key);
  const controller: Controller = new Controller({
    name: "gateway-slices",
    workers: 1,
    reconcile,
    clock,
    log,
  })
    .watch(caches.coreServices)
    .watch(caches.slices, (slice) => serviceKeyOf(slice) ?? [])
    .watch(caches.routes);
  const run = [controller.run(signal)];
  if (addressing.kind === "port")
    run.push(followAddresses(context, addressing, controller, signal));
  return run;
}

/** Gateways come and go: every slice names those that are there. */
async function followAddresses(
  { caches, clock }: Context,
  addressing: GatewayAddressing & { kind: "port" },
  controller: Controller,
  signal: AbortSignal,
): Promise<void> {
  let last = "";
  while (!signal.aborted) {
    const addresses = (await addressing.addresses()).toSorted().join(",");
    if (addresses !== last) {
      last = addresses;
      for (const slice of caches.slices.list()) {
        const key = serviceKeyOf(slice);
        if (key) controller.enqueue(key);
      }
    }
    await sleep(clock, addressesCheckMs, signal);
  }
}

function startScaler(
  options: ServingOptions & { client: KubeClient; clock: Clock; log: Logger },
  caches: Caches,
  settings: SettingsWatch,
): Promise<void>[] {
  const { client, clock, log, gateways, countsToken, signal } = options;
  const scaler: Scaler = new Scaler({
    client,
    caches,
    settings,
    knownSince: () => counts.knownSince,
    clock,
    log,
  });
  const counts = new CountsClient({
    gateways,
    token: countsToken,
    onLine: (source, line) => scaler.take(source, line),
    onGone: (source) => scaler.drop(source),
    clock,
    log,
  });
  return [scaler.run(signal), counts.run(signal)];
}
