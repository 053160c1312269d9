import { type Function, functions } from "@spry/function";
import {
  type Change,
  type Clock,
  Controller,
  type ControllerMetrics,
  deepEqual,
  EventRecorder,
  getCondition,
  keyOf,
  type KubeClient,
  type KubeObject,
  type Logger,
  type ObjectKey,
  silentLogger,
  systemClock,
} from "@spry/kube";
import {
  CommitLookups,
  removeAbandonedSessions,
  resolveCommit,
  type ServiceLookup,
} from "@spry/source";
import { BuildLogins } from "./build/build-login.ts";
import { BuildSlots } from "./build/build-slots.ts";
import { InheritedBuilds } from "./build/inherited-builds.ts";
import { type Caches, createCaches, functionKeyOf, scaledFunctionOf } from "./caches.ts";
import { type ControllerConfig, settingsOf } from "./config.ts";
import { ForeignEdits } from "./function/foreign-edits.ts";
import { FunctionMetrics } from "./function/function-metrics.ts";
import { functionReconciler } from "./function/function-reconciler.ts";
import { createPropagation } from "./registry/propagation.ts";
import { HandOvers } from "./function/serving/hand-overs.ts";
import { LostImages } from "./build/lost-images.ts";
import { ReferencedObjects } from "./function/referenced-objects.ts";
import { type RegistryAccess } from "./registry/registry-secret.ts";
import { type Liveness } from "./serverless/liveness.ts";

export interface FunctionControllerOptions {
  client: KubeClient;
  config: ControllerConfig;
  /** The platform's own registry, when it has one. */
  internalRegistry?: RegistryAccess | undefined;
  /** Where Git servers behind Services are, if no name server says it. */
  services?: ServiceLookup | undefined;
  clock?: Clock;
  log?: Logger;
  metrics?: ControllerMetrics;
  /** Is given the control loop to watch. */
  liveness?: Liveness;
  signal: AbortSignal;
}

/**
 * Turns Functions into running services until the signal is aborted; resolves when the passes under
 * way have ended. One instance at a time may run in a cluster: leader election is the caller's.
 */
export async function startFunctionController(options: FunctionControllerOptions): Promise<void> {
  const { client, metrics, signal, clock = systemClock, log = silentLogger } = options;
  const { internalRegistry: registry } = options;
  const telling = { clock, log, ...(metrics ? { metrics } : {}) };
  const settings = settingsOf(options.config);
  const caches = createCaches(client, clock, log);
  const running = Object.values(caches).map((informer) => informer.run(signal));
  const propagation = createPropagation({ client, caches, settings, registry, ...telling });

  // The reconciler's parts wake Functions, and the controller that is woken needs the reconciler.
  const wake = (key: ObjectKey) => controller.enqueue(key);
  const slots = new BuildSlots(settings.maxSimultaneousBuilds, caches.jobs, wake);
  const references = new ReferencedObjects({ client, clock, log, signal, onChange: wake });
  const events = new EventRecorder({ client, component: "function-controller", clock, log });
  removeAbandonedSessions();
  const environment = { ...process.env, ...settings.buildEnvironment };
  const commits = new CommitLookups({
    resolve: (question) =>
      resolveCommit(question, {
        environment,
        signal,
        allowed: settings.gitAllowedAddresses,
        services: options.services,
      }),
    wake,
    clock,
    max: settings.maxSimultaneousGitChecks,
  });
  const lost = new LostImages(clock);
  const inherited = new InheritedBuilds();
  const handOvers = new HandOvers(clock);
  const memory = { foreignEdits: new ForeignEdits(), buildLogins: new BuildLogins() };
  const parts = { handOvers, slots, references, commits, lost, inherited, events, ...memory };
  const deps = { client, settings, caches, registry, ...parts, clock, log };
  const own = metrics ? { metrics: FunctionMetrics.of(metrics.registry) } : {};
  const controller = new Controller({
    name: functions.plural,
    reconcile: functionReconciler({ ...deps, ...own }),
    workers: settings.workers,
    ...telling,
  });

  // Judging from half a picture would create again what is already there.
  // A cluster without Knative's definitions has no Knative Services, either.
  const { kservices: _optional, ...required } = caches;
  const synced = Promise.all(Object.values(required).map((informer) => informer.synced));
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([synced, aborted]);
  options.liveness?.watch(controller, signal);
  if (!signal.aborted) {
    slots.restore(waitingBefore(caches.functions.list()));
    inherited.remember(caches.jobs.list());
    watch(caches, controller, inherited);
  }
  await Promise.all([controller.run(signal), propagation.run(signal), ...running]);
  await events.flushed();
}

/** Whatever may change what a pass does brings a pass. */
function watch(caches: Caches, controller: Controller, inherited: InheritedBuilds): void {
  caches.functions.onChange((change) => {
    if (!isOwnStatusWrite(change)) controller.enqueue(keyOf(change.object));
  });
  const { configMaps, jobs, pods, deployments, services, autoscalers, kservices } = caches;
  jobs.onChange(({ type, object }) => {
    if (type === "deleted") inherited.forget(object);
  });
  const onChild = ({ object }: Change<KubeObject>) => controller.enqueue(functionKeyOf(object));
  autoscalers.onChange(({ object }) => {
    for (const key of scaledFunctionOf(object)) controller.enqueue(key);
  });
  for (const children of [configMaps, jobs, pods, deployments, services, autoscalers, kservices]) {
    children.onChange(onChild);
  }
  const onReferenced = ({ object }: Change<KubeObject>) => {
    for (const fn of caches.functions.list()) {
      if (fn.metadata.namespace === object.metadata.namespace) controller.enqueue(keyOf(fn));
    }
  };
  const { registrySecrets, remoteRegistrySecrets, internalRegistrySecrets } = caches;
  for (const informer of [registrySecrets, remoteRegistrySecrets, internalRegistrySecrets]) {
    informer.onChange(onReferenced);
  }
  caches.serviceAccounts.onChange(onReferenced);
}

/** A change of nothing but the status is our own, and needs no answer. */
function isOwnStatusWrite(change: Change<Function>): boolean {
  if (change.type !== "updated") return false;
  const { object, previous } = change;
  return (
    deepEqual(object.spec, previous.spec) &&
    deepEqual(object.metadata.labels, previous.metadata.labels) &&
    deepEqual(object.metadata.annotations, previous.metadata.annotations) &&
    object.metadata.uid === previous.metadata.uid &&
    object.metadata.generation === previous.metadata.generation &&
    object.metadata.deletionTimestamp === previous.metadata.deletionTimestamp
  );
}

/** Functions that waited for a build slot when the controller stopped, the longest first. */
function waitingBefore(all: Iterable<Function>): ObjectKey[] {
  const since = (fn: Function) => {
    const build = getCondition(fn.status?.conditions, "BuildReady");
    if (build?.reason !== "JobWaiting") return undefined;
    return `${build.lastTransitionTime} ${fn.metadata.creationTimestamp} ${keyOf(fn)}`;
  };
  const waiting = [...all].flatMap((fn) => {
    const order = since(fn);
    return order === undefined ? [] : [{ key: keyOf(fn), order }];
  });
  return waiting.sort((a, b) => (a.order < b.order ? -1 : 1)).map(({ key }) => key);
}
