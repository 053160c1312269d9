import { type CountsLine, knativeNames, type Revision } from "@spry/function";
import {
  type Clock,
  controllerOf,
  type Deployment,
  type KubeClient,
  keyOf,
  type Logger,
  messageOf,
  type ObjectKey,
  resources,
  sleep,
} from "@spry/kube";
import { type Caches } from "../caches.ts";
import { progressDeadlineOf } from "../reconcile/deployment.ts";
import { isInitialized } from "../reconcile/revision.ts";
import { type SettingsWatch } from "../settings/settings.ts";
import { Autoscaler } from "./autoscaler.ts";
import { decide } from "./decision.ts";
import { RevisionLoad } from "./revision-load.ts";
import { initialScaleOf, type ScaleSpec, scaleSpecOf } from "./scale-spec.ts";

export interface ScalerOptions {
  client: KubeClient;
  caches: Pick<Caches, "revisions" | "deployments">;
  settings: SettingsWatch;
  /** See `CountsClient.knownSince`. */
  knownSince: () => number | undefined;
  clock: Clock;
  log: Logger;
}

/** What the scaler knows of a Revision. */
interface State {
  load: RevisionLoad;
  autoscaler: Autoscaler | undefined;
  activeSince: number | undefined;
  inactiveSince: number | undefined;
  /** What has been written and not yet been seen in the cache. */
  written: { replicas: number; resourceVersion: string | undefined; at: number } | undefined;
  isWriting: boolean;
  /** What is looked at again in a moment: caches parse again what is not held. */
  inUse: readonly [Revision, Deployment] | undefined;
  /** Versions of the Deployment that the watch has shown during a write: it may be faster than the answer. */
  seen: Set<string | undefined>;
}

/** Knative's tick. What has no Pods and no requests is not looked at. */
const tickMs = 2_000;
const retryMs = 100;
/** What has been written counts for so long without the watch having shown it. */
const unseenMs = 10_000;
/** As long as Knative gives the Pods' failures to be seen before it takes them away. */
const activationBufferMs = 30_000;
/** More Revisions than a cluster has: lines about unknown ones are dropped here. */
const maxStates = 100_000;

/** Writes the replicas of Revisions' Deployments by what gateways count. Only the leader may run one. */
export class Scaler {
  readonly #options: ScalerOptions;
  readonly #states = new Map<ObjectKey, State>();
  /** What a tick looks at. */
  readonly #live = new Set<ObjectKey>();
  #specs = new WeakMap<Revision, { spec: ScaleSpec; initialScale: number }>();

  constructor(options: ScalerOptions) {
    this.#options = options;
    const { caches, settings } = options;
    settings.onChange(() => {
      this.#specs = new WeakMap();
      for (const key of caches.revisions.keys()) this.#live.add(key);
    });
    caches.revisions.onChange(({ type, object }) => {
      const key = keyOf(object);
      if (type === "deleted") {
        this.#states.delete(key);
        this.#live.delete(key);
      } else this.#live.add(key);
    });
    caches.deployments.onChange(({ type, object }) => this.#seen(type, object));
  }

  /** A change of a Revision's counts. What waits for a Revision without Pods is decided about at once. */
  take(source: string, line: CountsLine): void {
    const key = line.revision;
    const now = this.#options.clock.elapsed();
    const state = this.#stateOf(key);
    if (!state) return;
    if (state.load.current === 0 && this.#replicasOf(key, state) === 0) state.load.reset(now);
    state.load.take(source, line, now);
    if (state.load.current > 0) this.#live.add(key);
    if (this.#live.has(key)) this.#evaluate(key, now);
  }

  /** A gateway is gone, and with it what it had under way. */
  drop(source: string): void {
    const now = this.#options.clock.elapsed();
    for (const state of this.#states.values()) state.load.drop(source, now);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const now = clock.elapsed();
      for (const key of this.#live) this.#evaluate(key, now);
      await sleep(clock, tickMs, signal);
    }
  }

  #stateOf(key: ObjectKey): State | undefined {
    let state = this.#states.get(key);
    if (state || this.#states.size >= maxStates) return state;
    const { stableWindowMs } = this.#options.settings.current.autoscaler;
    state = {
      load: new RevisionLoad(stableWindowMs),
      autoscaler: undefined,
      activeSince: undefined,
      inactiveSince: undefined,
      written: undefined,
      isWriting: false,
      inUse: undefined,
      seen: new Set(),
    };
    this.#states.set(key, state);
    return state;
  }

  #seen(type: string, deployment: Deployment): void {
    const owner = controllerOf(deployment);
    if (owner?.kind !== "Revision") return;
    const key = `${deployment.metadata.namespace}/${owner.name}`;
    const state = this.#states.get(key);
    const written = state?.written;
    if (state?.isWriting) state.seen.add(deployment.metadata.resourceVersion);
    if (state && written) {
      const isSame = deployment.metadata.resourceVersion === written.resourceVersion;
      if (type === "deleted" || isSame || deployment.spec?.replicas === written.replicas)
        state.written = undefined;
    }
    this.#live.add(key);
  }

  #deploymentOf(key: ObjectKey): Deployment | undefined {
    const slash = key.indexOf("/");
    const name = knativeNames.deployment(key.slice(slash + 1));
    return this.#options.caches.deployments.get(`${key.slice(0, slash)}/${name}`);
  }

  #replicasOf(key: ObjectKey, state: State): number | undefined {
    const { written } = state;
    // A watch that has missed it shows something newer by then.
    const isRecent = written && this.#options.clock.elapsed() - written.at < unseenMs;
    return isRecent ? written.replicas : this.#deploymentOf(key)?.spec?.replicas;
  }

  #specOf(revision: Revision): { spec: ScaleSpec; initialScale: number } {
    let entry = this.#specs.get(revision);
    if (!entry) {
      const settings = this.#options.settings.current.autoscaler;
      const initialScale = initialScaleOf(revision, settings);
      entry = { spec: scaleSpecOf(revision, settings), initialScale };
      this.#specs.set(revision, entry);
    }
    return entry;
  }

  #evaluate(key: ObjectKey, now: number): void {
    const revision = this.#options.caches.revisions.get(key);
    const deployment = this.#deploymentOf(key);
    const state = this.#stateOf(key);
    if (!revision || !deployment || !state) return void this.#live.delete(key);
    const { spec, initialScale } = this.#specOf(revision);
    if (spec.foreignClass) return void this.#live.delete(key);
    state.inUse = [revision, deployment];
    const replicas = this.#replicasOf(key, state) ?? 0;
    const readyPods = deployment.status?.readyReplicas ?? 0;
    state.load.resize(spec.stableWindowMs, now);
    state.load.begin(now);
    state.autoscaler ??= new Autoscaler(now, readyPods);
    if (replicas === 0) state.activeSince = undefined;
    else state.activeSince ??= now;
    const stable = state.load.average(now, spec.stableWindowMs)[spec.metric];
    const panic = state.load.average(now, spec.panicWindowMs)[spec.metric];
    const { pods } = state.autoscaler.suggest(spec, { now, stable, panic, readyPods });
    const decision = decide(
      spec,
      {
        now,
        replicas,
        readyPods,
        current: state.load.current,
        initialized: isInitialized(revision),
        initialScale,
        activationMs: progressDeadlineOf(revision) + activationBufferMs,
        activeSince: state.activeSince ?? now,
        knownSince: this.#options.knownSince(),
        inactiveSince: state.inactiveSince,
      },
      pods,
    );
    state.inactiveSince = decision.inactiveSince;
    if (decision.replicas !== replicas) void this.#write(key, state, decision.replicas);
    else if (replicas === 0 && state.load.current === 0 && !state.isWriting) this.#rest(key, state);
  }

  /** Nothing to do until there is a request or a change. */
  #rest(key: ObjectKey, state: State): void {
    this.#live.delete(key);
    state.autoscaler = undefined;
    state.inactiveSince = undefined;
    state.inUse = undefined;
  }

  /** One write at a time for each Revision; when it has ended, the newest decision is the next. */
  async #write(key: ObjectKey, state: State, replicas: number): Promise<void> {
    if (state.isWriting) return;
    const { client, clock, log } = this.#options;
    const deployment = this.#deploymentOf(key);
    if (!deployment) return;
    const { namespace, name = "" } = deployment.metadata;
    const before = this.#replicasOf(key, state);
    state.isWriting = true;
    state.seen.clear();
    let again = 0;
    try {
      const patch = { spec: { replicas } };
      const written = await client.patch(resources.deployments, { namespace, name }, patch);
      const { resourceVersion } = written.metadata;
      const known = this.#deploymentOf(key)?.metadata.resourceVersion;
      const isSeen = known === resourceVersion || state.seen.has(resourceVersion);
      state.written = isSeen ? undefined : { replicas, resourceVersion, at: clock.elapsed() };
      log.debug({ revision: key, from: before, to: replicas }, "scaled a Revision");
    } catch (error) {
      again = retryMs;
      log.warn({ revision: key, error: messageOf(error) }, "scaling failed, trying again");
    } finally {
      state.isWriting = false;
    }
    this.#live.add(key);
    if (again > 0) clock.after(again, () => this.#evaluate(key, clock.elapsed()));
    else this.#evaluate(key, clock.elapsed());
  }
}
