import { type Subscription, type SubscriptionCondition, subscriptions } from "@spry/function";
import {
  type Clock,
  Controller,
  type ControllerMetrics,
  deepEqual,
  Informer,
  isNotFound,
  type KubeClient,
  keyOf,
  type Logger,
  type ObjectKey,
  resources,
  type Service,
  silentLogger,
  sleep,
  systemClock,
} from "@spry/kube";
import { type DefinitionOwner, definitionOwner } from "../definitions/ensure-definitions.ts";
import { consumerName } from "../dispatcher/subscription-worker.ts";
import { assess } from "../validation/assess.ts";
import { NamespaceLimit } from "../validation/namespace-limit.ts";
import { typesOf } from "../validation/plan.ts";

export interface SubscriptionsOptions {
  client: KubeClient;
  /** Is given who serves Subscriptions, when that is known and when it changes. */
  onOwner?: (owner: DefinitionOwner) => void;
  clock?: Clock;
  log?: Logger;
  metrics?: ControllerMetrics;
  signal: AbortSignal;
}

const lookAgainMs = 60_000;
const missingMs = 1_000;

/**
 * Writes the status of Subscriptions, as long as their definition is ours; where it is another installation's (Kyma's
 * Eventing module), nothing is read or written. One instance at a time may run in a cluster.
 */
export async function startSubscriptions(options: SubscriptionsOptions): Promise<void> {
  const { log = silentLogger } = options;
  await whileOurs({ ...options, log }, (signal) => serve(options, signal));
}

/** Does the work while the definition of Subscriptions is ours, until the signal is aborted. */
export async function whileOurs(
  options: Pick<SubscriptionsOptions, "client" | "clock" | "signal"> & {
    log: Logger;
    onOwner?: ((owner: DefinitionOwner) => void) | undefined;
  },
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { client, signal, clock = systemClock, log, onOwner } = options;
  let last: DefinitionOwner | undefined;
  while (!signal.aborted) {
    const owner = await definitionOwner(client).catch(() => last ?? "missing");
    if (owner !== last) {
      last = owner;
      onOwner?.(owner);
      if (owner === "other") log.info({}, "Subscriptions are served by another installation");
    }
    if (owner !== "ours") {
      await sleep(clock, owner === "missing" ? missingMs : lookAgainMs, signal);
      continue;
    }
    const stop = new AbortController();
    const inner = AbortSignal.any([signal, stop.signal]);
    const watch = async () => {
      while (!inner.aborted) {
        await sleep(clock, lookAgainMs, inner);
        if ((await definitionOwner(client).catch(() => "ours")) !== "ours") stop.abort();
      }
    };
    await Promise.all([watch(), work(inner)]);
  }
}

async function serve(options: SubscriptionsOptions, signal: AbortSignal): Promise<void> {
  const { client, metrics, clock = systemClock, log = silentLogger } = options;
  const common = { clock, log };
  const cache = new Informer(client, subscriptions, common);
  const limit = new NamespaceLimit(cache, (key) => controller.enqueue(key));
  const services = new Informer<Service>(client, resources.services, {
    ...common,
    transform: ({ metadata: { name, namespace }, spec }) =>
      ({
        metadata: { name, namespace },
        spec: { type: spec?.type, ports: spec?.ports },
      }) as Service,
  });
  const controller = new Controller({
    name: subscriptions.plural,
    workers: 2,
    ...common,
    ...(metrics ? { metrics } : {}),
    async reconcile(key) {
      const subscription = cache.get(key);
      if (!subscription || subscription.metadata.deletionTimestamp) return;
      await writeStatus(
        client,
        subscription,
        statusOf(subscription, (name) => services.get(name), limit, clock),
      );
    },
  });
  controller.watch(cache);
  // A Service concerns the Subscriptions of its namespace that name it.
  controller.watch(services, ({ metadata }) =>
    [...cache.list()]
      .filter(
        (each) =>
          each.metadata.namespace === metadata.namespace &&
          (each.spec.sink ?? "").includes(`//${metadata.name}.`),
      )
      .map((each) => keyOf(each)),
  );
  await Promise.all([controller.run(signal), cache.run(signal), services.run(signal)]);
}

/** In the original's words, its JetStream backend's. */
function statusOf(
  subscription: Subscription,
  serviceOf: (key: ObjectKey) => Service | undefined,
  limit: NamespaceLimit,
  clock: Clock,
) {
  const assessment = assess(subscription, serviceOf, limit);
  const isValid = "plan" in assessment;
  const types = isValid ? typesOf(subscription) : [];
  const condition = (
    type: string,
    isTrue: boolean,
    reason: string,
    message = "",
  ): SubscriptionCondition => {
    const status = isTrue ? "True" : "False";
    const before = subscription.status?.conditions?.find((each) => each.type === type);
    const isSame = before?.status === status && before.lastTransitionTime !== undefined;
    return {
      type,
      status,
      reason,
      message,
      // With milliseconds: events are the Subscription's from then on.
      lastTransitionTime: isSame
        ? (before.lastTransitionTime ?? "")
        : new Date(clock.now()).toISOString(),
    };
  };
  const valid = condition(
    "Subscription spec valid",
    isValid,
    isValid
      ? "Subscription spec has no validation errors"
      : "Subscription spec has validation errors",
    "problem" in assessment ? assessment.problem.slice(0, 4_096) : "",
  );
  const consumer = consumerName(keyOf(subscription));
  return {
    conditions: isValid
      ? [condition("Subscription active", true, "NATS Subscription active"), valid]
      : [valid],
    ready: isValid,
    types,
    backend: {
      types: types.map(({ originalType }) => ({ originalType, consumerName: consumer })),
    },
  };
}

async function writeStatus(
  client: KubeClient,
  subscription: Subscription,
  status: object,
): Promise<void> {
  if (deepEqual(subscription.status, status)) return;
  const { name = "", namespace } = subscription.metadata;
  try {
    await client.patch(subscriptions, { name, namespace }, { status }, { subresource: "status" });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
