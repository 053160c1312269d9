import path from "node:path";
import { type RegistryEndpoint } from "@spry/image";
import {
  type Clock,
  EventRecorder,
  type HostPort,
  Informer,
  type KubeClient,
  keyOf,
  type KubeObject,
  type Logger,
  messageOf,
  onClockSet,
  OutboundGuard,
  type Pod,
  type Resource,
  resources,
  silentLogger,
  sleep,
  systemClock,
  type Transport,
} from "@spry/kube";
import { ClusterWatch } from "../network/cluster-watch.ts";
import { apiServerIp, apiServerView, podView } from "../network/cluster-view.ts";
import { type RecoveredPod, type Sandbox } from "../sandbox/sandbox.ts";
import { type MeasureDisk, measureDisk } from "./disk-space.ts";
import { EvictionManager } from "./eviction-manager.ts";
import { ImageStore } from "./images.ts";
import { createKubelet } from "./kubelet.ts";
import {
  allocatable,
  leaseRenewMs,
  markNotReady,
  registerNode,
  renewLease,
} from "./node-object.ts";
import { imagesNamedBy } from "./named-images.ts";
import { OutdatedPods } from "./outdated-pods.ts";
import { PodStarts } from "./pod-starts.ts";
import { PodWorker } from "./pod-worker.ts";
import { podRefersTo } from "./volumes.ts";

export interface NodeOptions {
  client: KubeClient;
  name: string;
  /** Images, Pods and their logs are kept here. */
  dataDir: string;
  sandbox: Sandbox;
  /** Registry host in an image name → where to pull. */
  mirrors: Record<string, RegistryEndpoint>;
  /** The operator's registries on this machine that Pods may name besides; default none. */
  allowedLoopback?: readonly HostPort[];
  /** Image name → the digest that it stands for, where the platform knows. */
  pinned?: ReadonlyMap<string, string>;
  /** Where containers reach the API server: `KUBERNETES_SERVICE_HOST` and `_PORT`. */
  apiServer?: { host: string; port: number };
  /** Resolves when a Pod that is deleted gets no requests any more, or at the latest when the signal is aborted. */
  drained?: (pod: Pod, ip: string, signal: AbortSignal) => Promise<void>;
  /**
   * What others know of a container that was ready and has ended by an error: lines that are added to its log. `how`: its end in words, as in
   * "the container was killed: it exceeded its memory limit (128Mi)".
   */
  lastWords?: (pod: Pod, ip: string, how: string) => Promise<string[]>;
  /** How full the disk with the data directory is; by default as the system says. */
  measureDisk?: MeasureDisk;
  clock?: Clock;
  log?: Logger;
}

export interface MachineNode {
  /** Registers the Node, keeps its Lease and runs the Pods bound to it, until the signal is aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** `/containerLogs/{namespace}/{pod}/{container}` and `/stats/summary`. */
  readonly kubelet: Transport;
  /** Ends the agent; `leave` lets the Pods run on, for the next agent to take over. */
  stop(options: { pods: "stop" | "leave" }): Promise<void>;
}

/** As a kubelet's image garbage collection and eviction monitoring. */
const imageSweepMs = 5 * 60_000;
const evictionCheckMs = 10_000;
const storageCheckMs = 1_000;
const statusRenewMs = 300_000;
/** A platform that is being stopped does not wait for a Pod's whole grace period. */
const stopCapMs = 5_000;

type Optional = "apiServer" | "allowedLoopback" | "pinned" | "drained" | "lastWords";

export function createNode(options: NodeOptions): MachineNode {
  return new NodeAgent(options);
}

class NodeAgent implements MachineNode {
  readonly kubelet: Transport;
  readonly #options: Required<Omit<NodeOptions, Optional>> & Pick<NodeOptions, Optional>;
  readonly #images: ImageStore;
  readonly #evictions: EvictionManager;
  readonly #events: EventRecorder;
  readonly #starts: PodStarts;
  readonly #pods: Informer<Pod>;
  readonly #cluster: ClusterWatch;
  readonly #outdated: OutdatedPods;
  /** By uid: a Pod made again under its name is another one, and both may be here for a while. */
  readonly #workers = new Map<string, PodWorker>();
  /** Pods that ended here and that others still keep in the API, by a finalizer. */
  readonly #done = new Set<string>();
  readonly #ending = new AbortController();
  #recovered: Promise<RecoveredPod[]> | undefined;
  /** Whether workers have what an earlier agent left. */
  #hasTakenOver = false;

  constructor(options: NodeOptions) {
    this.#options = { clock: systemClock, log: silentLogger, measureDisk, ...options };
    const { client, name, clock, log, mirrors, pinned, dataDir, sandbox, apiServer } =
      this.#options;
    const imagesDir = path.resolve(dataDir, "images");
    this.#images = new ImageStore({
      dir: imagesDir,
      mirrors,
      pinned,
      keepsOwners: () => sandbox.keepsOwners,
      clock,
      log,
    });
    this.#evictions = new EvictionManager({
      dir: path.resolve(dataDir),
      measure: this.#options.measureDisk,
      images: this.#images,
      imagesInUse: () => this.#imagesInUse(),
      imagesNamed: async () => this.#digestsOf(await imagesNamedBy(client)),
      pods: () => this.#workers.values(),
      onChange: () => void this.#retrying(this.#ending.signal, () => this.#register()),
      clock,
      log,
    });
    this.#starts = new PodStarts({ dir: path.resolve(dataDir, "starting"), clock, log });
    this.#events = new EventRecorder({ client, component: "kubelet", host: name, clock, log });
    this.#pods = new Informer(client, resources.pods, {
      fieldSelector: `spec.nodeName=${name}`,
      clock,
      log,
    });
    this.#outdated = new OutdatedPods({
      client,
      pods: this.#pods,
      events: this.#events,
      clock,
      log,
    });
    this.#cluster = new ClusterWatch({
      client,
      clock,
      log,
      pods: () =>
        [...this.#workers.values()].flatMap(({ pod, sandbox }) =>
          sandbox ? podView(pod, sandbox.ip) : [],
        ),
      apply: (view) => sandbox.applyCluster(view),
      extra:
        apiServer === undefined
          ? []
          : [apiServerView({ ip: sandbox.hostAddress, port: apiServer.port })],
    });
    this.kubelet = createKubelet({
      sandbox,
      clock,
      nodeName: name,
      pods: () => this.#workers.values(),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client, name, clock } = this.#options;
    const end = AbortSignal.any([signal, this.#ending.signal]);
    this.#starts.open();
    await this.#images.open();
    if (end.aborted) return;
    const recovered = new Map((await this.#recover()).map((pod) => [pod.uid, pod]));
    void this.#pods.run(end);
    await Promise.race([this.#pods.synced, aborted(end)]);
    if (end.aborted) return;
    this.#starts.begun();
    const outdated = await this.#takeOverOutdated(recovered);
    this.#pods.onChange(({ type, object }) => {
      if (type === "deleted") this.#removed(object);
      else this.#put(object, recovered.get(object.metadata.uid ?? ""));
    });
    this.#hasTakenOver = true;
    this.#starts.keepOnly((uid) => this.#workers.has(uid));
    // At the same moment: a Pod that goes now is either a worker's, or one of these.
    const strangers = [...recovered.values()].filter(({ uid }) => !this.#workers.has(uid));
    recovered.clear();
    await this.#endStrangers(strangers);
    this.#watchObjects(end);
    // Tokens may have ended: what waits for a time of the clock's looks at it again.
    onClockSet(clock, () => this.#wakeAll(), end);
    void this.#cluster.run(end);
    // Before Pods are asked for.
    await this.#retrying(end, () => this.#evictions.check());
    await this.#retrying(end, () => this.#register());
    await Promise.all([
      this.#outdated.replace(outdated, end),
      this.#every(leaseRenewMs, end, () => renewLease(client, name, clock)),
      this.#every(statusRenewMs, end, () => this.#register()),
      this.#every(imageSweepMs, end, () => this.#evictions.collectImages()),
      this.#every(evictionCheckMs, end, () => this.#evictions.check()),
      this.#every(storageCheckMs, end, () => this.#evictions.checkLimits()),
    ]);
  }

  #wakeAll(): void {
    for (const worker of this.#workers.values()) worker.wake();
  }

  #recover(): Promise<RecoveredPod[]> {
    return (this.#recovered ??= this.#options.sandbox.recover());
  }

  /** What the agent calls for a Pod of this namespace: not the machine, and not another namespace's Pods. */
  #guardOf(namespace: string): OutboundGuard {
    const isOthers = ({ pod: { metadata, status } }: PodWorker, address: string) =>
      status?.podIP === address && metadata.namespace !== namespace;
    return new OutboundGuard({
      allowPrivate: true,
      allowed: this.#options.allowedLoopback ?? [],
      problemOf: (address) =>
        [...this.#workers.values()].some((worker) => isOthers(worker, address))
          ? "is of a Pod of another namespace"
          : undefined,
    });
  }

  #register(): Promise<void> {
    const { client, name, sandbox, clock } = this.#options;
    const facts = {
      images: this.#images.list(),
      diskPressure: this.#evictions.hasDiskPressure,
    };
    return registerNode(client, name, sandbox, facts, clock);
  }

  /**
   * Of the Pods whose network is not what it should be, those that others replace go on until then: their uids are the result. The
   * others are ended, and set up again.
   */
  async #takeOverOutdated(recovered: Map<string, RecoveredPod>): Promise<Set<string>> {
    const byUid = new Map([...this.#pods.list()].map((pod) => [pod.metadata.uid ?? "", pod]));
    const goOn = new Set<string>();
    for (const [uid, pod] of recovered) {
      if (!pod.isOutdated) continue;
      if (OutdatedPods.isReplaced(byUid.get(uid))) {
        goOn.add(uid);
        continue;
      }
      await this.#endRecovered(pod, "making a Pod again failed");
      recovered.delete(uid);
    }
    return goOn;
  }

  /** What still runs here of Pods that were deleted while no agent was there. */
  async #endStrangers(strangers: readonly RecoveredPod[]): Promise<void> {
    for (const pod of strangers)
      await this.#endRecovered(pod, "removing a Pod that was deleted failed");
  }

  async #endRecovered({ uid, sandbox, containers }: RecoveredPod, problem: string): Promise<void> {
    for (const { container } of containers) container.kill("SIGTERM");
    // What is left is looked at again by the next agent; the Pods that are wanted need this one now.
    await sandbox.close().catch((error: unknown) => {
      this.#options.log.warn({ pod: uid, error: messageOf(error) }, problem);
    });
  }

  #put(pod: Pod, recovered?: RecoveredPod): void {
    const uid = pod.metadata.uid ?? "";
    if (this.#ending.signal.aborted || this.#done.has(uid)) return;
    const known = this.#workers.get(uid);
    if (known) {
      known.update(pod);
      this.#cluster.changed();
      return;
    }
    const { client, sandbox, clock, log, name, apiServer } = this.#options;
    const worker = new PodWorker(pod, {
      client,
      sandbox,
      images: this.#images,
      guard: this.#guardOf(pod.metadata.namespace ?? ""),
      events: this.#events,
      starts: this.#starts,
      clock,
      log,
      place: {
        hostIp: sandbox.hostAddress,
        nodeName: name,
        allocatable: allocatable(),
        apiServer: apiServer && this.#apiServerFor(pod, apiServer),
      },
      recovered,
      drained: this.#options.drained,
      lastWords: this.#options.lastWords,
      onPlaced: () => this.#cluster.placed(pod.metadata.namespace ?? ""),
      onEnd: () => {
        this.#workers.delete(uid);
        this.#starts.forget(uid);
        this.#cluster.changed();
        // Not after the informer has said that it is gone.
        if (this.#pods.get(keyOf(pod))?.metadata.uid === uid) this.#done.add(uid);
      },
    });
    this.#workers.set(uid, worker);
    const rejection = pod.status?.startTime ? undefined : this.#evictions.rejection(pod);
    if (rejection) worker.evict(rejection);
    worker.wake();
  }

  /** The machine's 127.0.0.1 is not that of a Pod with a network of its own. */
  #apiServerFor(pod: Pod, apiServer: { host: string; port: number }) {
    const isReached = pod.spec?.hostNetwork || this.#options.sandbox.hostAddress === apiServer.host;
    return isReached ? apiServer : { host: apiServerIp, port: 443 };
  }

  #removed(pod: Pod): void {
    const uid = pod.metadata.uid ?? "";
    this.#done.delete(uid);
    const { log } = this.#options;
    this.#workers
      .get(uid)
      ?.removed()
      .catch((error: unknown) =>
        log.error({ pod: keyOf(pod), error: messageOf(error) }, "removing Pod failed"),
      );
  }

  /** ConfigMaps and Secrets reach running Pods when they change, and waiting ones when they appear. */
  #watchObjects(signal: AbortSignal): void {
    const { client, clock, log } = this.#options;
    for (const kind of ["configMap", "secret"] as const) {
      const resource: Resource = kind === "secret" ? resources.secrets : resources.configMaps;
      // Only that something changed: contents are read when a Pod needs them.
      const transform = ({ metadata }: KubeObject) => ({ metadata });
      const informer = new Informer(client, resource, { clock, log, transform });
      informer.onChange(({ object: { metadata } }) => {
        // What is there at the start was read by the Pods themselves.
        if (!informer.hasSynced) return;
        for (const worker of this.#workers.values()) {
          const { pod } = worker;
          const isNear = pod.metadata.namespace === metadata.namespace;
          if (isNear && podRefersTo(pod, kind, metadata.name ?? "")) worker.refresh();
        }
      });
      void informer.run(signal);
    }
  }

  #digestsOf(images: ReadonlySet<string>): Set<string> {
    return new Set([...images].flatMap((name) => this.#images.digestOf(name) ?? []));
  }

  #imagesInUse(): Set<string> {
    const digests = new Set<string>();
    for (const { pod } of this.#workers.values()) {
      const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
      for (const { imageID } of [...initContainerStatuses, ...containerStatuses])
        digests.add(imageID.slice(imageID.indexOf("@") + 1));
      // Also what has been pulled for a container that does not run yet.
      const { initContainers = [], containers = [] } = pod.spec ?? {};
      for (const { image = "" } of [...initContainers, ...containers])
        digests.add(this.#images.digestOf(image) ?? "");
    }
    return digests;
  }

  async #every(ms: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await this.#retrying(signal, work);
      await sleep(this.#options.clock, ms, signal);
    }
  }

  async #retrying(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { clock, log, name } = this.#options;
    for (let pauseMs = 100; !signal.aborted; pauseMs = Math.min(pauseMs * 2, 5_000)) {
      try {
        return await work();
      } catch (error) {
        log.warn(
          { node: name, error: messageOf(error) },
          "updating the Node object failed, retrying",
        );
        await sleep(clock, pauseMs, signal);
      }
    }
  }

  async stop({ pods }: { pods: "stop" | "leave" }): Promise<void> {
    if (this.#ending.signal.aborted) return;
    const { client, name, clock, log, sandbox } = this.#options;
    this.#ending.abort();
    this.#starts.release();
    const workers = [...this.#workers.values()];
    if (pods === "leave") for (const worker of workers) worker.release();
    else await Promise.all([this.#stopAll(workers), this.#stopLeft()]);
    if (pods === "stop")
      await markNotReady(client, name, sandbox, clock).catch((error: unknown) =>
        log.debug({ error: messageOf(error) }, "marking the node not ready failed"),
      );
    if (pods === "stop") await sandbox.close();
    await this.#events.flushed();
  }

  /** A platform may be stopped before this agent has taken over what the one before it left running. */
  async #stopLeft(): Promise<void> {
    if (this.#hasTakenOver) return;
    const recovered = await this.#recover().catch((error: unknown) => {
      // The log informs the operator; everything else must still be stopped.
      const { log } = this.#options;
      log.warn(
        { error: messageOf(error) },
        "ending processes that an earlier node agent left behind failed",
      );
      return [];
    });
    const containers = recovered.flatMap((pod) => pod.containers);
    const ends = containers.map(async ({ container }) => {
      container.kill("SIGTERM");
      const cancel = this.#options.clock.after(stopCapMs, () => container.kill("SIGKILL"));
      await container.exited;
      cancel();
    });
    await Promise.all(ends);
  }

  /** Waits for all, also when one cannot be ended. */
  async #stopAll(workers: readonly PodWorker[]): Promise<void> {
    const ends = workers.map(async (worker) => {
      try {
        await worker.stop(stopCapMs);
      } catch (error) {
        const { log } = this.#options;
        log.warn({ pod: keyOf(worker.pod), error: messageOf(error) }, "stopping Pod failed");
      }
    });
    await Promise.all(ends);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
