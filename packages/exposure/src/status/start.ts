import { apiRules, certificatesSecretName, istioGateways } from "@spry/function";
import {
  type Clock,
  Controller,
  type ControllerMetrics,
  Informer,
  type KubeClient,
  type Logger,
  resources,
  type Service,
  silentLogger,
  sleep,
  systemClock,
} from "@spry/kube";
import { isStatusAlone } from "../routes/status-alone.ts";
import { withPorts } from "../routes/slim-service.ts";
import { type DefinitionOwner, definitionOwner } from "../definitions/ensure-definitions.ts";
import { type HostAuthority } from "./own-certificates.ts";
import { type ExposureCaches, exposureReconciler } from "./reconciler.ts";

export interface ExposureOptions {
  client: KubeClient;
  /** The platform's own: where the Secret of collected certificates is. */
  namespace: string;
  /** Whether the platform issues certificates itself, for Gateways that name none. */
  ownCertificates: boolean;
  /** Who issues them. */
  authority?: HostAuthority;
  /** Is given who serves APIRules, when that is known and when it changes. */
  onOwner?: (owner: DefinitionOwner) => void;
  clock?: Clock;
  log?: Logger;
  metrics?: ControllerMetrics;
  signal: AbortSignal;
}

const lookAgainMs = 60_000;
const missingMs = 1_000;
const key = "exposure";

/**
 * Writes the status of APIRules and the Secret of collected certificates, as long as the definition of APIRules is
 * ours. Where it is another installation's (Kyma's API Gateway module), nothing is read or written. One instance at a
 * time may run in a cluster.
 */
export async function startExposure(options: ExposureOptions): Promise<void> {
  const { client, signal, clock = systemClock, log = silentLogger, onOwner } = options;
  let last: DefinitionOwner | undefined;
  while (!signal.aborted) {
    const owner = await definitionOwner(client).catch(() => last ?? "missing");
    if (owner !== last) {
      last = owner;
      onOwner?.(owner);
      if (owner === "other") log.info({}, "APIRules are served by another installation");
    }
    if (owner === "ours") await serve(options, signal);
    else await sleep(clock, owner === "missing" ? missingMs : lookAgainMs, signal);
  }
}

/** Until the signal is aborted, or the definition is not ours any more. */
async function serve(options: ExposureOptions, outer: AbortSignal): Promise<void> {
  const { client, namespace, ownCertificates, authority, metrics } = options;
  const { clock = systemClock } = options;
  const log = options.log ?? silentLogger;
  const stop = new AbortController();
  const signal = AbortSignal.any([outer, stop.signal]);
  const common = { clock, log };
  const caches: ExposureCaches = {
    apiRules: new Informer(client, apiRules, common),
    gateways: new Informer(client, istioGateways, { ...common, mayBeMissing: true }),
    services: new Informer(client, resources.services, { ...common, transform: withPorts }),
    certificates: new Informer(client, resources.secrets, {
      ...common,
      fieldSelector: "type=kubernetes.io/tls",
    }),
    collected: new Informer(client, resources.secrets, {
      ...common,
      namespace,
      fieldSelector: `metadata.name=${certificatesSecretName}`,
    }),
  };
  const controller = new Controller({
    name: apiRules.plural,
    workers: 1,
    ...common,
    ...(metrics ? { metrics } : {}),
    reconcile: exposureReconciler({
      client,
      caches,
      namespace,
      ownCertificates,
      ...(authority ? { authority } : {}),
      clock,
      log,
    }),
  });
  // All are looked at together: whose a host is depends on the others.
  const informers = Object.values(caches) as Informer<Service>[];
  for (const informer of informers)
    controller.watch(informer, (informer as unknown) === caches.apiRules ? () => [] : () => [key]);
  // Not for what a pass has written itself: with thousands of them, each pass takes its time.
  caches.apiRules.onChange((change) => {
    if (!isStatusAlone(change)) controller.enqueue(key);
  });
  controller.enqueue(key);
  const watchOwner = async () => {
    while (!signal.aborted) {
      await sleep(clock, lookAgainMs, signal);
      const owner = await definitionOwner(client).catch(() => "ours");
      if (owner !== "ours") stop.abort();
    }
  };
  await Promise.all([
    watchOwner(),
    controller.run(signal),
    ...informers.map((informer) => informer.run(signal)),
  ]);
}
