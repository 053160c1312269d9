import {
  type Clock,
  deepEqual,
  type Deployment,
  type EndpointSlice,
  Informer,
  type KubeClient,
  keyOf,
  type KubeObject,
  type Logger,
  messageOf,
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
  #changed = Promise.withResolvers<void>();
  /** Resolves with the end of the next round that begins. */
  #nextRound = Promise.withResolvers<void>();

  constructor(options: ClusterWatchOptions) {
    this.#options = options;
    const { client, clock, log } = options;
    const informer = <T extends KubeObject>(resource: Resource<T>) =>
      new Informer<T>(client, resource, { clock, log });
    this.#services = informer(resources.services);
    this.#policies = informer(resources.networkPolicies);
    this.#namespaces = informer(resources.namespaces);
    this.#deployments = new Informer<Deployment>(client, resources.deployments, {
      clock,
      log,
      labelSelector: "serving.knative.dev/service",
    });
    this.#slices = new Informer<EndpointSlice>(client, resources.endpointSlices, {
      clock,
      log,
      indexes: { [byService]: (slice) => [serviceOfSlice(slice)] },
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
      await this.#changed.promise;
      await sleep(clock, settleMs, signal);
    }
  }

  #view(): ClusterView {
    const services = [...this.#services.list()].map((each) =>
      serviceView(each, this.#slices.byIndex(byService, keyOf(each))),
    );
    const isThere = (each: ServiceView) => this.#services.get(`${each.namespace}/${each.name}`);
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
