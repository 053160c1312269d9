import {
  type Clock,
  type EventRecorder,
  isConflict,
  isNotFound,
  type KubeClient,
  type Logger,
  messageOf,
  type OutboundGuard,
  type Pod,
  pullCredentials,
  resources,
  sleep,
  timestamp,
} from "@spry/kube";
import {
  type LocalImage,
  type PodIdentity,
  type PodPlacement,
  type PodSandbox,
  type RecoveredPod,
  type Sandbox,
} from "../sandbox/sandbox.ts";
import { type ContainerRun } from "./container-run.ts";
import { ContainerConfigError, PodObjects, type PodPlace } from "./environment.ts";
import { isolationOf } from "./isolation.ts";
import { ImagePulls } from "./image-pulls.ts";
import { type ImageStore } from "./images.ts";
import { mergeConditions, type PodFacts, podStatus } from "./pod-status.ts";
import { PassLoop } from "./pass-loop.ts";
import { type PodStarts } from "./pod-starts.ts";
import { PodContainers } from "./pod-containers.ts";
import { PodNotes } from "./pod-notes.ts";
import { PodTokens } from "./pod-tokens.ts";
import { StatusWriter } from "./status-writer.ts";
import { WakeTimer } from "./wake-timer.ts";
import { VolumeError, writeVolumes } from "./volumes.ts";

export interface PodWorkerOptions {
  client: KubeClient;
  sandbox: Sandbox;
  images: ImageStore;
  events: EventRecorder;
  starts: PodStarts;
  clock: Clock;
  log: Logger;
  place: Omit<PodPlace, "podIp">;
  /** Which addresses the agent calls for this Pod. */
  guard: OutboundGuard;
  recovered?: RecoveredPod | undefined;
  /** See `NodeOptions`. */
  drained?: ((pod: Pod, ip: string, signal: AbortSignal) => Promise<void>) | undefined;
  /** See `NodeOptions`. */
  lastWords?: ((pod: Pod, ip: string, how: string) => Promise<string[]>) | undefined;
  /** The Pod has got its place; resolves when its network is as it should be. */
  onPlaced: () => Promise<void>;
  /** The Pod is gone from this machine. */
  onEnd: () => void;
}

const retryMs = 1_000;
/** Of the grace period, what is left to programs after their last request. */
const signalMs = 1_000;
const lastRetryMs = 30_000;
/** How long the end of the platform waits for a status to be written. */
const flushCapMs = 1_000;
/** What a Pod that was removed without notice gets to end in. */
const orphanGraceMs = 2_000;
/** As a kubelet's immediateEvictionGracePeriodSeconds. */
const evictionGraceMs = 1_000;

/**
 * Runs one Pod. Whatever happens (the Pod changes, a process ends, a probe decides, an image has
 * arrived, a pause is over) only wakes the worker; each pass then looks at how things are and does
 * what is next, and the status is written when it is different from the last. Passes never overlap
 * and never wait for anything slow.
 */
export class PodWorker {
  readonly #options: PodWorkerOptions;
  readonly #containers: PodContainers;
  readonly #pulls: ImagePulls;
  readonly #status: StatusWriter;
  readonly #tokens: PodTokens;
  readonly #startTime: string;
  #pod: Pod;
  #place: PodSandbox | undefined;
  #phase: "running" | "ending" | "ended" = "running";
  #ended: PodFacts["ended"];
  #volumesWritten = false;
  #retryMs = retryMs;
  /** The present pass has asked for another one later. */
  #retries = false;
  /** What the Pod's status says while others come first. */
  #heldBack: string | undefined;
  /** When containers that could not be made may be tried again, by name. */
  readonly #notBefore = new Map<string, number>();
  readonly #passes = new PassLoop(() => this.#passWithRetry());
  readonly #timer: WakeTimer;
  #ending: Promise<void> | undefined;
  #draining: AbortController | undefined;
  readonly #notes: PodNotes;

  constructor(pod: Pod, options: PodWorkerOptions) {
    this.#pod = pod;
    this.#options = options;
    this.#notes = new PodNotes(options.clock);
    const { client, clock, log, images, sandbox, recovered } = options;
    this.#startTime = (pod.status?.startTime as unknown as string) ?? timestamp(clock);
    this.#status = new StatusWriter({ client, clock, log, pod });
    this.#tokens = new PodTokens(client, clock, pod);
    const note = this.#note;
    const wake = () => this.wake();
    this.#timer = new WakeTimer(clock, wake);
    const credentials = () => pullCredentials(client, this.#pod);
    const namespaceUid = async () => {
      const name = this.#pod.metadata.namespace ?? "";
      return (await client.get(resources.namespaces, { name })).metadata.uid ?? "";
    };
    const from = { images, credentials, namespaceUid };
    const during = <T>(work: () => Promise<T>) => this.#noted(work);
    const { guard } = options;
    this.#pulls = new ImagePulls({ ...from, guard, sandbox, clock, note, wake, during });
    const lastWords = (ip: string, how: string) => options.lastWords?.(this.#pod, ip, how);
    this.#containers = new PodContainers(pod, {
      clock,
      wake,
      note,
      lastWords,
      // One in the machine's network can call it itself.
      guard: pod.spec?.hostNetwork ? undefined : options.guard,
    });
    for (const container of this.#containers)
      container.onUnhealthy((why, seconds) => this.#restart(container, why, seconds));
    const { phase, reason = "", message = "" } = pod.status ?? {};
    if (phase === "Failed" && reason) this.#ended = { reason, message };
    this.#place = recovered?.sandbox;
    if (recovered) this.#containers.adopt(recovered, pod);
  }

  get pod(): Pod {
    return this.#pod;
  }
  get sandbox(): PodSandbox | undefined {
    return this.#place;
  }
  get isEnded(): boolean {
    return this.#phase === "ended";
  }

  container(name: string): ContainerRun | undefined {
    return this.#containers.named(name);
  }

  usesImage(digest: string): boolean {
    return this.#containers.usesImage(digest);
  }

  /** A newer version of the same Pod. */
  update(pod: Pod): void {
    this.#pod = pod;
    this.wake();
  }

  /** A ConfigMap or Secret of the Pod has changed. */
  refresh(): void {
    this.#volumesWritten = false;
    this.wake();
  }

  wake(): void {
    this.#passes.wake();
  }

  async #passWithRetry(): Promise<void> {
    this.#notes.beginPass();
    this.#retries = false;
    try {
      await this.#pass();
      if (!this.#retries) this.#retryMs = retryMs;
    } catch (error) {
      const { log } = this.#options;
      log.warn(
        { pod: this.#pod.metadata.name, error: messageOf(error) },
        "running Pod failed, trying again",
      );
      this.#retryLater();
    } finally {
      this.#notes.endPass(
        () => this.#status.flushed(),
        () => this.#phase === "running",
      );
    }
  }

  /** Waits longer each time, until a pass succeeds. */
  #retryLater(): void {
    this.#retries = true;
    this.#timer.wakeAfter(this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, lastRetryMs);
  }

  async #pass(): Promise<void> {
    if (this.#phase !== "running") return;
    if (this.#pod.metadata.deletionTimestamp) return this.#beginEnd();
    const phase = this.#pod.status?.phase;
    // Ended for good, perhaps in an earlier agent's time: nothing is started again.
    if (phase === "Succeeded" || phase === "Failed") return this.#stopLeftovers();
    if (this.#isOverDeadline()) {
      this.#ended = {
        reason: "DeadlineExceeded",
        message: "Pod was active on the node longer than the specified deadline",
      };
      this.#note("Normal", this.#ended.reason, this.#ended.message);
    }
    if (this.#ended?.reason === "Evicted") await this.#clear();
    else if (this.#ended) await this.#stopAll(this.#graceMs());
    else await this.#advance();
    this.#publish();
  }

  /**
   * Gives the Pod up for good, because the machine lacks something; what it holds on disk goes. False
   * when it is at its end already.
   */
  evict(message: string): boolean {
    if (this.#ended || this.#phase !== "running") return false;
    this.#ended = { reason: "Evicted", message };
    this.#note("Warning", this.#ended.reason, message);
    this.wake();
    return true;
  }

  async #clear(): Promise<void> {
    await this.#stopAll(evictionGraceMs);
    await this.#place?.close();
    this.#place = undefined;
  }

  /** Starts what is to run now. */
  async #advance(): Promise<void> {
    const isDone = this.#place !== undefined && this.#containers.areAllRunning;
    if (isDone) return this.#advanceNow();
    if (this.#isHeldBack()) return;
    await this.#noted(() => this.#advanceNow());
  }

  /** An earlier agent may have ended because of this Pod: others come first. */
  #isHeldBack(): boolean {
    const suspicion = this.#containers.isAnyRunning
      ? undefined
      : this.#options.starts.suspicion(this.#pod.metadata.uid ?? "");
    if (!suspicion) {
      if (this.#heldBack !== undefined) this.#setWaiting("ContainerCreating");
      this.#heldBack = undefined;
      return false;
    }
    const { message, ms } = suspicion;
    const isNew = this.#heldBack !== message;
    this.#heldBack = message;
    if (isNew) this.#note("Warning", "StartDelayed", message);
    this.#setWaiting("StartDelayed", message);
    this.#timer.wakeAfter(ms);
    return true;
  }

  #setWaiting(reason: string, message?: string): void {
    for (const container of this.#containers.nextToRun())
      if (!container.isRunning) container.wait(reason, message);
  }

  /** The work is part of the Pod's start: if it ends the agent, the next one knows it. */
  async #noted<T>(work: () => Promise<T>): Promise<T> {
    const { starts } = this.#options;
    const { uid = "", namespace = "", name = "" } = this.#pod.metadata;
    starts.begin(uid, `${namespace}/${name}`);
    try {
      return await work();
    } finally {
      starts.end(uid);
    }
  }

  async #advanceNow(): Promise<void> {
    const { client, sandbox } = this.#options;
    const { uid = "", namespace = "", name = "" } = this.#pod.metadata;
    if (!this.#place) {
      void this.#pulls.begin();
      if (this.#waitsForImage()) return;
      const expected = await this.#expected();
      const place = { uid, namespace, name, expected, ...networkOf(this.#pod) };
      this.#place = await sandbox.openPod(place);
      await this.#options.onPlaced();
    }
    const objects = new PodObjects(client, namespace, this.#tokens);
    if (!(await this.#writeVolumes(this.#place, objects))) return;
    for (const container of this.#containers.nextToRun())
      await this.#startIfDue(container, this.#place, objects);
    this.#containers.stopSidecarsAtEnd(this.#pod, this.#graceMs(), this.#place);
  }

  /** Where something waits for Pods, the image says whether it is for this one, before the Pod gets an address. */
  #waitsForImage(): boolean {
    const { only } = this.#containers;
    const waiting = this.#options.sandbox.warmFigures?.()?.waiting ?? 0;
    return waiting > 0 && only !== undefined && this.#pulls.isBringing(only);
  }

  /** Without an image that the Pod may use: what waits for those who may is not for it. */
  async #expected(): Promise<PodPlacement["expected"]> {
    const { only } = this.#containers;
    if (!only?.spec.image) return undefined;
    const image = await this.#pulls.presentFor(only.spec.image);
    if (!image) return { image };
    try {
      return { image, isolation: isolationOf(this.#pod, only.spec, image.config.User ?? "") };
    } catch (error) {
      // The start of the container says what is wrong.
      if (error instanceof ContainerConfigError) return undefined;
      throw error;
    }
  }

  async #startIfDue(
    container: ContainerRun,
    place: PodSandbox,
    objects: PodObjects,
  ): Promise<void> {
    if (container.isRunning || container.isStarting) return;
    if (container.exitCode !== undefined && !this.#containers.mayRestart(container, this.#pod))
      return;
    const delay = container.restartDelay(this.#pod);
    if (delay !== undefined) return this.#timer.wakeAfter(delay);
    const pauseMs = (this.#notBefore.get(container.name) ?? 0) - this.#options.clock.elapsed();
    if (pauseMs > 0) {
      this.#retries = true;
      return this.#timer.wakeAfter(pauseMs);
    }
    const image = this.#pulls.imageFor(container);
    if (!image) return this.#timer.wakeAfter(this.#pulls.msUntilRetry(container));
    await this.#start(container, place, image, objects);
  }

  async #start(
    container: ContainerRun,
    place: PodSandbox,
    image: LocalImage,
    objects: PodObjects,
  ): Promise<void> {
    try {
      await container.start(this.#pod, place, image, objects, {
        ...this.#options.place,
        podIp: place.ip,
      });
      this.#notBefore.delete(container.name);
    } catch (error) {
      const isConfig = error instanceof ContainerConfigError;
      const reason = isConfig ? "CreateContainerConfigError" : "CreateContainerError";
      const message = messageOf(error);
      const known = container.status().state?.waiting;
      container.wait(reason, message);
      if (known?.message !== message) this.#note("Warning", "Failed", `Error: ${message}`);
      // A change of the object that is missing wakes at once; this is for everything else.
      const { clock } = this.#options;
      if (!isConfig) this.#notBefore.set(container.name, clock.elapsed() + this.#retryMs);
      this.#retryLater();
    }
  }

  /** Returns false while the volumes do not exist: no container can be started then. */
  async #writeVolumes(place: PodSandbox, objects: PodObjects): Promise<boolean> {
    const isDue = this.#tokens.msUntilRefresh <= 0;
    if (this.#volumesWritten && !isDue) {
      this.#timer.wakeAfter(this.#tokens.msUntilRefresh);
      return true;
    }
    // Set before the work: a change during it asks for another round.
    this.#volumesWritten = true;
    const running = this.#containers.isAnyRunning;
    try {
      const at = { ...this.#options.place, podIp: place.ip };
      await writeVolumes(this.#pod, place.dir, objects, at, place.owner);
      this.#timer.wakeAfter(this.#tokens.msUntilRefresh);
      return true;
    } catch (error) {
      this.#volumesWritten = false;
      if (!(error instanceof VolumeError)) throw error;
      this.#note("Warning", "FailedMount", error.message);
      this.#retryLater();
      // A running Pod keeps what it had.
      return running;
    }
  }

  #isOverDeadline(): boolean {
    const seconds = this.#pod.spec?.activeDeadlineSeconds;
    if (seconds === undefined) return false;
    const ms = Date.parse(this.#startTime) + seconds * 1000 - this.#options.clock.now();
    if (ms > 0) this.#timer.wakeAfter(ms);
    return ms <= 0;
  }

  /** A Pod's deletion says how long its end may take; else the probe, then the Pod. */
  #restart(container: ContainerRun, why: string, graceSeconds?: number): void {
    const place = this.#place;
    const { deletionGracePeriodSeconds: deletion } = this.#pod.metadata;
    const own = deletion === undefined && graceSeconds !== undefined;
    const graceMs = own ? graceSeconds * 1000 : this.#graceMs();
    if (place && this.#phase === "running") void container.stop(graceMs, place, why);
  }

  #graceMs(): number {
    const { metadata, spec } = this.#pod;
    return (
      (metadata.deletionGracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? 30) * 1000
    );
  }

  async #stopAll(graceMs: number): Promise<void> {
    if (this.#place) await this.#containers.stopAll(graceMs, this.#place);
  }

  /** An ended Pod has no business running anything; its logs stay until it is deleted. */
  async #stopLeftovers(): Promise<void> {
    if (this.#containers.isAnyRunning) await this.#stopAll(0);
  }

  /** Deletion is under way: ends the containers in parallel with the passes, so that a shorter grace period can follow. */
  #beginEnd(): void {
    if (this.#ending) {
      this.#draining?.abort();
      void this.#stopAll(this.#graceMs());
      return;
    }
    this.#ending = this.#end().catch((error: unknown) => {
      this.#ending = undefined;
      this.#options.log.warn(
        { pod: this.#pod.metadata.name, error: messageOf(error) },
        "ending Pod failed, trying again",
      );
      this.#timer.wakeAfter(retryMs);
    });
  }

  async #end(): Promise<void> {
    this.#timer.clear();
    // A container that is just being started is stopped too.
    await this.#passes.settled();
    const begin = this.#options.clock.elapsed();
    await this.#drained(this.#graceMs());
    const takenMs = this.#options.clock.elapsed() - begin;
    await this.#stopAll(Math.max(0, this.#graceMs() - takenMs));
    this.#phase = "ending";
    this.#publish();
    await this.#status.flushed();
    const { namespace, name = "", uid = "" } = this.#pod.metadata;
    try {
      await this.#options.client.delete(
        resources.pods,
        { namespace, name },
        { gracePeriodSeconds: 0, preconditions: { uid } },
      );
    } catch (error) {
      // Replaced or gone: either way this one is no more.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    } finally {
      this.#phase = "running";
    }
    await this.#close();
  }

  /** A part of the grace period, and ended by a shorter one: what is stopped already needs no more waiting. */
  async #drained(graceMs: number): Promise<void> {
    const { drained, clock } = this.#options;
    const place = this.#place;
    if (!drained || !place || graceMs <= 0) return;
    const left = (this.#draining = new AbortController());
    const stop = clock.after(Math.max(0, graceMs - signalMs), () => left.abort());
    try {
      await drained(this.#pod, place.ip, left.signal);
    } catch (error) {
      const pod = this.#pod.metadata.name;
      this.#options.log.debug({ pod, error: messageOf(error) }, "waiting for a Pod's requests");
    } finally {
      stop();
    }
  }

  /** The Pod has been removed from the API without waiting for us. */
  async removed(): Promise<void> {
    this.#draining?.abort();
    this.#passes.end();
    await this.#passes.settled();
    await this.#stopAll(orphanGraceMs);
    // The end under way must not wait for a status that no server takes any more.
    this.#status.close();
    if (this.#ending) await this.#ending;
    await this.#close();
  }

  async #close(): Promise<void> {
    if (this.isEnded) return;
    this.#phase = "ended";
    this.#passes.end();
    this.#timer.clear();
    this.#status.close();
    this.#notes.flush();
    this.#containers.release();
    await this.#place?.close();
    this.#options.onEnd();
  }

  /** The platform stops: ends the processes but keeps the Pod, so that the next start runs it again. */
  async stop(capMs: number): Promise<void> {
    this.#phase = "ended";
    this.#timer.clear();
    this.#passes.end();
    await this.#passes.settled();
    await this.#stopAll(Math.min(this.#graceMs(), capMs));
    // Written to the API server, so that no request is sent to an address where nothing listens after the next start.
    this.#publish();
    await Promise.race([this.#status.flushed(), sleep(this.#options.clock, flushCapMs)]);
    this.#status.close();
    this.#notes.flush();
    this.#containers.release();
  }

  /** Lets go of the Pod without touching its processes. */
  release(): void {
    this.#passes.end();
    this.#phase = "ended";
    this.#timer.clear();
    this.#status.close();
    this.#notes.flush();
    this.#containers.release();
  }

  #publish(): void {
    const facts: PodFacts = {
      ...this.#containers.statuses(),
      podIp: this.#place?.ip,
      hostIp: this.#options.place.hostIp,
      startTime: this.#startTime,
      ended: this.#ended,
      isTerminal: this.#phase === "ending",
    };
    const conditions = mergeConditions(
      this.#status.latest.conditions,
      this.#pod.status?.conditions,
    );
    const pod = { ...this.#pod, status: { ...this.#status.latest, conditions } };
    this.#status.write(podStatus(pod, facts, this.#options.clock));
  }

  readonly #note = (type: "Normal" | "Warning", reason: string, message: string): void => {
    const note = { type, reason, message } as const;
    this.#notes.add(() => this.#options.events.record(resources.pods, this.#pod, note));
  };
}

/** What a Pod wants of the network, and of names in it. */
function networkOf({ metadata, spec }: Pod): Omit<PodPlacement, keyof PodIdentity> {
  const { dnsPolicy, dnsConfig, hostNetwork, hostname, subdomain, hostAliases = [] } = spec ?? {};
  return {
    hostName: hostname ?? metadata.name,
    subdomain,
    hostNetwork,
    dns: { policy: dnsPolicy, config: dnsConfig },
    hostAliases: hostAliases.map(({ ip = "", hostnames = [] }) => ({ ip, hostnames })),
  };
}
