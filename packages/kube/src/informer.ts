import { type KubeClient } from "./client.ts";
import { type Clock, sleep, systemClock } from "./clock.ts";
import { isGone, isNotFound, messageOf } from "./errors.ts";
import { type Logger, silentLogger } from "./log.ts";
import { MultiMap } from "./multi-map.ts";
import { keyOf, type KubeObject, type ObjectKey } from "./objects.ts";
import { type Resource } from "./resources.ts";
import { type SharedObjects, sharedObjectsOf } from "./shared-objects.ts";

export type Change<T> =
  | { type: "added"; object: T }
  | { type: "updated"; object: T; previous: T }
  | { type: "deleted"; object: T };

export interface InformerOptions<T> {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Values under which an object can be looked up; the name is that of the index. */
  indexes?: Record<string, (object: T) => readonly string[]>;
  /** What to keep of an object that has arrived, to save memory; its metadata must stay. */
  transform?: (object: T) => T;
  /**
   * Holds objects that are not in use as text: a third of the memory, where there are thousands that seldom change. A caller that
   * looks at all of them has all of them parsed. Not together with `transform`.
   */
  resting?: boolean;
  clock?: Clock;
  log?: Logger;
  /** The server may not serve this kind (yet): that is not logged as a failure. */
  mayBeMissing?: boolean;
  /** The longest pause between attempts to reach the server. */
  maxRetryMs?: number;
  /** From 0 to 1, for jitter. */
  random?: () => number;
}

const firstRetryMs = 100;
const defaultMaxRetryMs = 10_000;
/** A watch that lasted so long has been a good one: the next failure is a first one. */
const goodWatchMs = 5_000;
/** The server is asked to end each watch after 5 to 10 minutes, so that they move between servers. */
const minWatchSeconds = 300;
/** A watch that the server should have ended so long ago is one whose connection has died unnoticed. */
const overdueMs = 30_000;

/** Itself, or a `SharedObject` that rests. */
interface Held<T> {
  readonly object: T;
  readonly resourceVersion: string | undefined;
}

/**
 * A local, always current copy of a collection: one list, then a watch that is resumed where it
 * ended. `410 Gone` lists again and reports what changed meanwhile. `managedFields` are dropped on
 * arrival. Objects in the cache are shared: never change them.
 */
export class Informer<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly #client: KubeClient;
  readonly #options: InformerOptions<T>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #shared: SharedObjects<T>;
  readonly #objects = new Map<ObjectKey, Held<T>>();
  readonly #indexes = new Map<string, MultiMap<string, ObjectKey>>();
  readonly #listeners = new Set<(change: Change<T>) => void>();
  readonly #synced = Promise.withResolvers<void>();
  #hasSynced = false;
  #lostAt: number | undefined;
  #resourceVersion: string | undefined;

  constructor(client: KubeClient, resource: Resource<T>, options: InformerOptions<T> = {}) {
    this.#client = client;
    this.resource = resource;
    this.#shared = sharedObjectsOf(resource);
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#log = (options.log ?? silentLogger).child({ informer: resource.plural });
    for (const name of Object.keys(options.indexes ?? {})) this.#indexes.set(name, new MultiMap());
  }

  /** Resolves once the first list is in. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }
  get hasSynced(): boolean {
    return this.#hasSynced;
  }
  /** Since when it may be out of date, by `Clock.elapsed`: the server has not been heard of since. */
  get lostAt(): number | undefined {
    return this.#lostAt;
  }

  get(key: ObjectKey): T | undefined {
    return this.#objects.get(key)?.object;
  }

  *list(): IterableIterator<T> {
    for (const { object } of this.#objects.values()) yield object;
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#objects.keys();
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Objects that the named index files under this value. */
  byIndex(name: string, value: string): T[] {
    const keys = this.#indexes.get(name)?.get(value) ?? [];
    return keys.flatMap((key) => this.get(key) ?? []);
  }

  /** Calls back on every change from now on, and at once with what is already there. */
  onChange(listener: (change: Change<T>) => void): () => void {
    this.#listeners.add(listener);
    for (const object of this.list()) this.#tell(listener, { type: "added", object });
    return () => this.#listeners.delete(listener);
  }

  /** Runs until the signal is aborted. Failures are logged and retried with growing pauses. */
  async run(signal: AbortSignal): Promise<void> {
    let retryMs = firstRetryMs;
    while (!signal.aborted) {
      const startedAt = this.#clock.elapsed();
      try {
        if (this.#resourceVersion === undefined) await this.#relist(signal);
        await this.#watch(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#lostAt ??= this.#clock.elapsed();
        if (isGone(error)) this.#resourceVersion = undefined;
        else if (!(this.#options.mayBeMissing && isNotFound(error)))
          this.#log.warn({ error: messageOf(error), retryMs }, "watching failed, trying again");
      }
      // Also a watch that only ends at once, without any error, must not be asked for in a tight loop.
      if (this.#clock.elapsed() - startedAt >= goodWatchMs) retryMs = firstRetryMs;
      await sleep(this.#clock, retryMs * (0.5 + this.#random() / 2), signal);
      retryMs = Math.min(retryMs * 2, this.#options.maxRetryMs ?? defaultMaxRetryMs);
    }
  }

  async #relist(signal: AbortSignal): Promise<void> {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    const list = await this.#client.list(this.resource, {
      namespace,
      labelSelector,
      fieldSelector,
      omitManagedFields: true,
      signal,
    });
    const seen = new Set<ObjectKey>();
    for (const object of list.items) {
      seen.add(keyOf(object));
      this.#put(object);
    }
    for (const [key, held] of this.#objects) if (!seen.has(key)) this.#remove(held.object);
    this.#resourceVersion = list.metadata.resourceVersion ?? "";
    this.#lostAt = undefined;
    this.#hasSynced = true;
    this.#synced.resolve();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    const timeoutSeconds = Math.round(minWatchSeconds * (1 + this.#random()));
    const stalled = new AbortController();
    const cancel = this.#clock.after(timeoutSeconds * 1000 + overdueMs, () => stalled.abort());
    try {
      const events = this.#client.watch(this.resource, {
        namespace,
        labelSelector,
        fieldSelector,
        resourceVersion: this.#resourceVersion ?? "",
        timeoutSeconds,
        omitManagedFields: true,
        shared: this.#shared,
        signal: AbortSignal.any([signal, stalled.signal]),
      });
      for await (const event of events) {
        if (signal.aborted) return;
        this.#lostAt = undefined;
        if (event.type === "ADDED" || event.type === "MODIFIED") this.#put(event.object);
        else if (event.type === "DELETED") this.#remove(event.object);
        this.#resourceVersion = event.object.metadata.resourceVersion ?? this.#resourceVersion;
      }
    } finally {
      cancel();
    }
  }

  #put(arrived: T): void {
    // Seldom left by now. V8 keeps an object that something has been deleted from in a form that takes far more memory.
    if (arrived.metadata.managedFields) delete arrived.metadata.managedFields;
    const key = keyOf(arrived);
    const known = this.#objects.get(key);
    if (known && known.resourceVersion === arrived.metadata.resourceVersion) return;
    const held = this.#hold(arrived);
    const { object } = held;
    const previous = known?.object;
    if (previous && previous.metadata.uid !== object.metadata.uid) this.#remove(previous);
    else if (previous) this.#index(previous, "delete");
    const isReplaced = this.#objects.has(key);
    this.#objects.set(key, held);
    this.#index(object, "add");
    this.#emit(
      previous && isReplaced ? { type: "updated", object, previous } : { type: "added", object },
    );
  }

  #hold(arrived: T): Held<T> {
    const { resourceVersion } = arrived.metadata;
    const shared = this.#shared.of(arrived);
    const { transform, resting } = this.#options;
    if (transform) return { object: transform(shared.object), resourceVersion };
    if (!resting) return { object: shared.object, resourceVersion };
    shared.rest();
    return shared;
  }

  #remove(object: T): void {
    const key = keyOf(object);
    const previous = this.#objects.get(key)?.object;
    if (!previous) return;
    this.#index(previous, "delete");
    this.#objects.delete(key);
    this.#emit({ type: "deleted", object });
  }

  #index(object: T, change: "add" | "delete"): void {
    const key = keyOf(object);
    for (const [name, valuesOf] of Object.entries(this.#options.indexes ?? {})) {
      const index = this.#indexes.get(name);
      if (!index) continue;
      for (const value of valuesOf(object)) index[change](value, key);
    }
  }

  #emit(change: Change<T>): void {
    for (const listener of this.#listeners) this.#tell(listener, change);
  }

  /** A listener that throws harms neither the cache nor the other listeners. */
  #tell(listener: (change: Change<T>) => void, change: Change<T>): void {
    try {
      listener(change);
    } catch (error) {
      const fields = { object: keyOf(change.object), error: messageOf(error) };
      this.#log.error(fields, "an informer's listener threw an error");
    }
  }
}
