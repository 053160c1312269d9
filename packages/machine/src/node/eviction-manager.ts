import path from "node:path";
import { type Clock, type Logger, messageOf, type Pod, quantityValue } from "@spry/kube";
import { directoryBytes, type DiskSpace, type MeasureDisk } from "./disk-space.ts";
import { type ImageStore } from "./images.ts";
import { exceededStorage, quantity, type WrittenPlaces } from "./storage-limits.ts";

/** A Pod on this machine that can be given up. */
export interface EvictablePod {
  readonly pod: Pod;
  readonly sandbox?: WrittenPlaces | undefined;
  /** False when it is at its end already. */
  evict(message: string): boolean;
}

export interface EvictionManagerOptions {
  /** On the file system that is watched. */
  dir: string;
  measure: MeasureDisk;
  images: ImageStore;
  /** Digests. */
  imagesInUse: () => ReadonlySet<string>;
  /** Digests of images that workloads name which have no Pods at present. */
  imagesNamed: () => Promise<ReadonlySet<string>>;
  pods: () => Iterable<EvictablePod>;
  /** The pressure has come or gone: to be said on the Node. */
  onChange: () => void;
  clock: Clock;
  log: Logger;
}

/** `imageGCHighThresholdPercent` and `imageGCLowThresholdPercent` of a kubelet. */
const imageGc = { high: 0.85, low: 0.8, minAgeMs: 120_000 };
/** Pressure, whichever is less: the tenth of a large disk that kubelets require would be more than is needed. */
const leastFree = { part: 0.05, bytes: 1024 ** 3 };
/** `evictionPressureTransitionPeriod`: so long no new Pod comes after the disk has been too full. */
const transitionMs = 300_000;
/** As much has been written since the last look: Pods are looked at now. */
const fastGrowth = 128 * 1024 ** 2;
/** Otherwise so often. */
const limitsMs = 10_000;
/** `system-cluster-critical`: never evicted. */
const criticalPriority = 2_000_000_000;

/**
 * Keeps space free on the disk. From 85 % on, unused images are removed, the longest unused first; when almost
 * nothing is free, all of them are removed, and then one Pod per check, as the kubelet's eviction manager does
 * (pkg/kubelet/eviction, Kubernetes "Node-pressure Eviction").
 */
export class EvictionManager {
  readonly #options: EvictionManagerOptions;
  /** When there was too little room last. */
  #lastMet: number | undefined;
  #availableBefore = Number.POSITIVE_INFINITY;
  #limitsAt = Number.NEGATIVE_INFINITY;

  constructor(options: EvictionManagerOptions) {
    this.#options = options;
  }

  get hasDiskPressure(): boolean {
    return this.#lastMet !== undefined;
  }

  /** Why a new Pod cannot be taken now; undefined when it can. */
  rejection(pod: Pod): string | undefined {
    if (!this.hasDiskPressure || isCritical(pod)) return undefined;
    return "The node had condition: [DiskPressure]. ";
  }

  /** Removes images that are not worth their room, and more when the disk is getting full. */
  async collectImages(): Promise<void> {
    const { images, imagesInUse } = this.#options;
    const named = await this.#named();
    const before = await this.#measure();
    await images.removeUnused({ inUse: imagesInUse(), named }, before.capacity);
    const { capacity, available } = await this.#measure();
    const used = capacity - available;
    if (used < capacity * imageGc.high) return;
    const excess = used - capacity * imageGc.low;
    await images.free(excess, { inUse: imagesInUse(), named }, imageGc.minAgeMs);
  }

  /** Undefined while the API server cannot be asked. */
  async #named(): Promise<ReadonlySet<string> | undefined> {
    const { imagesNamed, log } = this.#options;
    try {
      return await imagesNamed();
    } catch (error) {
      log.warn({ error: messageOf(error) }, "listing the images that workloads use failed");
      return undefined;
    }
  }

  /** One look at the disk. Gives up one Pod at most. */
  async check(): Promise<void> {
    const { images, imagesInUse, clock, log, onChange } = this.#options;
    let space = await this.#measure();
    const had = this.hasDiskPressure;
    if (isMet(space)) {
      const uses = { inUse: imagesInUse(), named: undefined };
      const freed = await images.free(Number.POSITIVE_INFINITY, uses, 0);
      space = await this.#measure();
      log.warn({ ...space, freed }, "the disk is nearly full");
    }
    if (isMet(space)) {
      this.#lastMet = clock.elapsed();
      if (!had) onChange();
      await this.#evictOne(space);
    } else if (this.#lastMet !== undefined && clock.elapsed() - this.#lastMet >= transitionMs) {
      this.#lastMet = undefined;
      onChange();
    }
  }

  /**
   * Evicts the Pods that have written more than their limit. Call it often: all of them are measured only every ten
   * seconds, or when the disk fills quickly.
   */
  async checkLimits(): Promise<void> {
    const { available } = await this.#measure();
    const grown = this.#availableBefore - available;
    this.#availableBefore = available;
    const now = this.#options.clock.elapsed();
    if (grown < fastGrowth && now - this.#limitsAt < limitsMs) return;
    this.#limitsAt = now;
    for (const each of this.#options.pods()) {
      if (!each.sandbox || !isRunning(each.pod)) continue;
      const why = await exceededStorage(each.pod, each.sandbox);
      if (why !== undefined) each.evict(why);
    }
  }

  #measure(): Promise<DiskSpace> {
    return this.#options.measure(this.#options.dir);
  }

  async #evictOne(space: DiskSpace): Promise<void> {
    const candidates = [...this.#options.pods()].filter(({ pod }) => isActive(pod));
    const usages = await Promise.all(candidates.map((each) => usageOf(each)));
    const ranked = usages.toSorted(
      (a, b) =>
        Number(b.exceeds) - Number(a.exceeds) ||
        (a.evictable.pod.spec?.priority ?? 0) - (b.evictable.pod.spec?.priority ?? 0) ||
        b.bytes - a.bytes,
    );
    for (const usage of ranked) if (usage.evictable.evict(evictionMessage(space, usage))) return;
  }
}

interface Usage {
  evictable: EvictablePod;
  /** Logs, volumes and scratch. */
  bytes: number;
  /** It takes more than it has asked for. */
  exceeds: boolean;
  containers: { name: string; bytes: number; request: number }[];
}

async function usageOf(evictable: EvictablePod): Promise<Usage> {
  const { pod, sandbox } = evictable;
  const { initContainers = [], containers = [] } = pod.spec ?? {};
  const parts = [...containers, ...initContainers].map(async ({ name, resources }) => {
    const bytes = sandbox ? await directoryBytes(path.join(sandbox.dir, "containers", name)) : 0;
    const request = resources?.requests?.["ephemeral-storage"] ?? "0";
    return { name, bytes, request: quantityValue(request) };
  });
  const places = sandbox ? [sandbox.dir, ...(sandbox.elsewhere ?? [])] : [];
  let bytes = 0;
  for (const place of places) bytes += await directoryBytes(place);
  const all = await Promise.all(parts);
  const asked = all.reduce((sum, { request }) => sum + request, 0);
  return { evictable, bytes, exceeds: bytes > asked, containers: all };
}

function evictionMessage(space: DiskSpace, { containers }: Usage): string {
  const low = "The node was low on resource: ephemeral-storage. ";
  const met = `Threshold quantity: ${quantity(thresholdOf(space))}, available: ${quantity(space.available)}. `;
  const exceeding = containers
    .filter(({ bytes, request }) => bytes > request)
    .map(
      ({ name, bytes, request }) =>
        `Container ${name} was using ${quantity(bytes)}, request is ${quantity(request)}, has larger consumption of ephemeral-storage. `,
    );
  return low + met + exceeding.join("");
}

function thresholdOf({ capacity }: DiskSpace): number {
  return Math.floor(Math.min(capacity * leastFree.part, leastFree.bytes));
}

const isMet = (space: DiskSpace): boolean => space.available < thresholdOf(space);

const isCritical = ({ spec }: Pod): boolean => (spec?.priority ?? 0) >= criticalPriority;

const isActive = (pod: Pod): boolean => isRunning(pod) && !isCritical(pod);

function isRunning(pod: Pod): boolean {
  const isOver = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
  return !isOver && !pod.metadata.deletionTimestamp;
}
