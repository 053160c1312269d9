import {
  type Clock,
  type EndpointSlice,
  Informer,
  type KubeClient,
  keyOf,
  type Logger,
  messageOf,
  resources,
  sleep,
} from "@spry/kube";
import { serviceOfSlice, serviceView, type ServiceView } from "./cluster-view.ts";

export interface ClusterWatchOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  /** Takes what is so now. Never called again before it has resolved. */
  apply: (services: ServiceView[]) => Promise<void>;
}

/** Changes that come together are applied together. */
const settleMs = 5;
const retryMs = 1_000;
const byService = "service";

/** Keeps the names of this machine's Pods as the API has them. Ends with the signal. */
export async function watchCluster(
  options: ClusterWatchOptions,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, log, apply } = options;
  const services = new Informer(client, resources.services, { clock, log });
  const slices = new Informer<EndpointSlice>(client, resources.endpointSlices, {
    clock,
    log,
    indexes: { [byService]: (slice) => [serviceOfSlice(slice)] },
  });
  let changed = Promise.withResolvers<void>();
  for (const informer of [services, slices]) {
    void informer.run(signal);
    informer.onChange(() => changed.resolve());
  }
  signal.addEventListener("abort", () => changed.resolve(), { once: true });
  await Promise.race([Promise.all([services.synced, slices.synced]), aborted(signal)]);
  while (!signal.aborted) {
    changed = Promise.withResolvers();
    if (signal.aborted) return;
    try {
      await apply(
        [...services.list()].map((each) =>
          serviceView(each, slices.byIndex(byService, keyOf(each))),
        ),
      );
    } catch (error) {
      log.warn({ error: messageOf(error) }, "bringing the Pods' network up to date failed");
      await sleep(clock, retryMs, signal);
      continue;
    }
    await changed.promise;
    await sleep(clock, settleMs, signal);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
