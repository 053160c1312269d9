import {
  type Clock,
  deepEqual,
  Informer,
  type InformerOptions,
  type KubeClient,
  keyOf,
  type KubeObject,
  type Logger,
  messageOf,
  type ObjectKey,
  type Resource,
  resources,
  sleep,
} from "@spry/kube";
import {
  type ClusterView,
  podsBehind,
  type PodView,
  serviceOfSlice,
  serviceView,
  type ServiceView,
  withPodsAlone,
} from "./cluster-view.ts";

export interface ClusterWatchOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  /** The Pods of this machine. */
  pods: () => PodView[];
  /** Services that the API need not know of; where it does, its word counts. */
  extra: ServiceView[];
  /** Takes what is so now. Never called again before it has resolved. */
  apply: (view: ClusterView) => Promise<void>;
}

/** Changes that come together are applied together. */
const settleMs = 5;
/** With thousands of Services that change, all the time would be spent on it: it may take half. */
const maxSettleMs = 250;
const retryMs = 1_000;
/** A Pod does not wait longer for policies that cannot be applied. */
const maxWaitMs = 2_000;
const byService = "service";

/** Keeps the network of this machine's Pods as the API has it. */
export class ClusterWatch {
  readonly #options: ClusterWatchOptions;
  readonly #services;
  readonly #slices;
  readonly #policies;
  readonly #namespaces;
  readonly #deployments;
  /** Of each Service that has not changed since: with thousands of them, a change is one of a few. */
  readonly #views = new Map<ObjectKey, ServiceView>();
  #changed = Promise.withResolvers<void>();
  /** Resolves with the end of the next round that begins. */
  #nextRound = Promise.withResolvers<void>();

  constructor(options: ClusterWatchOptions) {
    this.#options = options;
    const { client, clock, log } = options;
    const informer = <T extends KubeObject>(
      resource: Resource<T>,
      options: InformerOptions<T> = {},
    ) => new Informer<T>(client, resource, { clock, log, ...options });
    this.#services = informer(resources.services, { resting: true });
    this.#policies = informer(resources.networkPolicies);
    this.#namespaces = informer(resources.namespaces);
    this.#deployments = informer(resources.deployments, {
      labelSelector: "serving.knative.dev/service",
      transform: withPodsAlone,
    });
    this.#slices = informer(resources.endpointSlices, {
      resting: true,
      indexes: { [byService]: (slice) => [serviceOfSlice(slice)] },
    });
    this.#services.onChange(({ object }) => this.#views.delete(keyOf(object)));
    this.#slices.onChange((change) => {
      this.#views.delete(serviceOfSlice(change.object));
      if (change.type === "updated") this.#views.delete(serviceOfSlice(change.previous));
    });
  }

  /** Something about the Pods of this machine is different. */
  changed(): void {
    this.#changed.resolve();
  }

  /** Resolves when a Pod that has just got its address is treated as policies say. */
  async placed(namespace: string): Promise<void> {
    this.changed();
    const isFree = [...this.#policies.list()].every(
      (each) => each.metadata.namespace !== namespace,
    );
    if (isFree) return;
    await Promise.race([this.#nextRound.promise, sleep(this.#options.clock, maxWaitMs)]);
  }

  /** Ends with the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, apply } = this.#options;
    for (const informer of [this.#services, this.#slices, this.#policies, this.#namespaces]) {
      void informer.run(signal);
      informer.onChange(() => this.changed());
    }
    void this.#deployments.run(signal);
    // What is behind a place changes by another Deployment, or another template; not by its scale.
    this.#deployments.onChange((change) => {
      const isScale =
        change.type === "updated" &&
        deepEqual(change.previous.spec?.template, change.object.spec?.template);
      if (!isScale) this.changed();
    });
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    signal.addEventListener("abort", () => this.changed(), { once: true });
    await Promise.race([Promise.all([this.#services.synced, this.#slices.synced]), aborted]);
    while (!signal.aborted) {
      this.#changed = Promise.withResolvers();
      const round = this.#nextRound;
      this.#nextRound = Promise.withResolvers();
      const begin = clock.elapsed();
      try {
        await apply(this.#view());
        round.resolve();
      } catch (error) {
        this.#nextRound = round;
        log.warn({ error: messageOf(error) }, "updating the Pods' network failed");
        await sleep(clock, retryMs, signal);
        continue;
      }
      if (signal.aborted) return;
      const pauseMs = Math.min(Math.max(clock.elapsed() - begin, settleMs), maxSettleMs);
      await this.#changed.promise;
      await sleep(clock, pauseMs, signal);
    }
  }

  #viewOf(key: ObjectKey): ServiceView | undefined {
    let view = this.#views.get(key);
    const service = view ? undefined : this.#services.get(key);
    if (service) {
      view = serviceView(service, this.#slices.byIndex(byService, key));
      this.#views.set(key, view);
    }
    return view;
  }

  #view(): ClusterView {
    const services = [...this.#services.keys()].flatMap((key) => this.#viewOf(key) ?? []);
    const isThere = (each: ServiceView) => this.#views.has(`${each.namespace}/${each.name}`);
    services.push(...this.#options.extra.filter((each) => !isThere(each)));
    return {
      services,
      policies: [...this.#policies.list()],
      pods: this.#options.pods(),
      behind:
        this.#policies.size > 0
          ? podsBehind(this.#slices.list(), this.#deployments.list())
          : new Map(),
      namespaces: new Map(
        [...this.#namespaces.list()].map(({ metadata }) => [
          metadata.name ?? "",
          metadata.labels ?? {},
        ]),
      ),
    };
  }
}
