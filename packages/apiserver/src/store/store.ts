import { type UnknownObject } from "@spry/kube";
import { writeCopy } from "./copy.ts";
import { boundHistories, EventLog, type StoreListener } from "./event-log.ts";
import { type Change, SqliteJournal } from "./sqlite-journal.ts";
import { Snapshots } from "./snapshots.ts";
import { loadable } from "./store-quota.ts";
import { checkLength, type Growth, shown, StoredBytes, type StoreQuota } from "./stored-bytes.ts";
import { bytesOf, keyOf, StoredObject } from "./stored-object.ts";

/** The objects on disk do not fit into this process's heap. */
export class StoreTooLargeError extends Error {
  override readonly name = "StoreTooLargeError";
  readonly bytes: number;

  constructor(bytes: number) {
    super(`the stored objects take ${shown(bytes)}, more than this process can load`);
    this.bytes = bytes;
  }
}

/** Where an object lives. A collection is `<group>/<plural>`, whatever the versions. */
export interface Place {
  collection: string;
  namespace: string;
  name: string;
}

/** The writer's view of the object was not the latest one. */
export class StaleWriteError extends Error {
  override readonly name = "StaleWriteError";
}

/** One version goes, another one comes. */
type Observer = (previous: StoredObject | undefined, current: StoredObject | undefined) => void;

interface Collection {
  objects: Map<string, StoredObject>;
  /** Keys in order; undefined after an insertion or removal. */
  sorted: string[] | undefined;
  log: EventLog;
}

const tidyAfterMs = 100;
const unlimited: StoreQuota = { total: Infinity, perNamespace: Infinity };

interface PendingWrite {
  change: Change;
  previous: StoredObject | undefined;
  current: StoredObject;
  type: "ADDED" | "MODIFIED" | "DELETED";
  resolve(stored: StoredObject): void;
  reject(error: unknown): void;
}

/**
 * All objects, in memory for reading and in a journal for keeping. A write takes effect in memory at
 * once, so that the next writer sees it; it is acknowledged, and watchers hear of it, when it is on
 * disk. Writes that come while the disk is being synced share the next sync.
 */
export class Store {
  readonly #journal: SqliteJournal;
  readonly #collections = new Map<string, Collection>();
  readonly #logs: EventLog[] = [];
  /** Watches cannot begin before it: the history is not kept on disk. */
  readonly #openedAt: number;
  readonly #bytes: StoredBytes;
  readonly #observers = new Map<string, Observer[]>();
  /** Of readers that take their time. */
  readonly snapshots = new Snapshots();
  #revision: number;
  #committed: number;
  /** In memory, not yet in the journal. */
  #pending: PendingWrite[] = [];
  /** In the journal, perhaps not yet on disk. */
  #syncing: PendingWrite[] = [];
  #isScheduled = false;
  #tidying: NodeJS.Timeout | undefined;
  /** They want to see what is on disk, and nothing else. */
  #readers: (() => void)[] = [];

  /** The quota is unlimited by default. */
  constructor(dataDir: string, quota: StoreQuota = unlimited) {
    this.#journal = new SqliteJournal(dataDir);
    const bytes = this.#journal.bytes();
    if (bytes > loadable()) {
      this.#journal.close();
      throw new StoreTooLargeError(bytes);
    }
    this.#bytes = new StoredBytes(quota);
    this.#openedAt = this.#journal.revision();
    this.#revision = this.#openedAt;
    this.#committed = this.#openedAt;
    for (const stored of this.#journal.objects()) {
      this.#collection(stored.collection).objects.set(stored.key, stored);
      this.#bytes.replace(undefined, stored);
    }
  }

  /** How much the objects take. */
  get bytes(): Pick<StoredBytes, "total" | "of" | "problem"> {
    return this.#bytes;
  }

  /** Calls back with each change of a collection as soon as it can be read, and with each that is undone because it failed. */
  observe(collection: string, observer: Observer): void {
    this.#observers.set(collection, [...(this.#observers.get(collection) ?? []), observer]);
  }

  /** The latest revision: what a list made now carries as its resourceVersion. */
  get revision(): number {
    return this.#revision;
  }

  /** The latest revision that watchers have heard of. */
  get committed(): number {
    return this.#committed;
  }

  get({ collection, namespace, name }: Place): StoredObject | undefined {
    return this.#collections.get(collection)?.objects.get(keyOf(namespace, name));
  }

  /** In the order of keys; all namespaces when none is given. */
  list(collection: string, namespace?: string): StoredObject[] {
    const found = this.#collections.get(collection);
    if (!found) return [];
    found.sorted ??= [...found.objects.keys()].sort();
    const result: StoredObject[] = [];
    for (const key of found.sorted) {
      const stored = found.objects.get(key);
      if (stored && (!namespace || stored.namespace === namespace)) result.push(stored);
    }
    return result;
  }

  /** The same in the state after a revision. Throws a `StatusError` 410 when that is too long ago. */
  listAt(collection: string, revision: number, namespace?: string): StoredObject[] {
    const now = this.list(collection, namespace);
    const since = this.#collection(collection).log.after(revision);
    if (since.length === 0) return now;
    const then = new Map(now.map((stored) => [stored.key, stored]));
    for (const { current, previous } of since.toReversed()) {
      if (namespace && current.namespace !== namespace) continue;
      if (previous) then.set(current.key, previous);
      else then.delete(current.key);
    }
    return [...then.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Collections that hold anything. */
  collections(): string[] {
    return [...this.#collections].filter(([, { objects }]) => objects.size > 0).map(([key]) => key);
  }

  /** Throws `StaleWriteError` unless this is the latest version: a write that follows at once succeeds. */
  expect(previous: StoredObject): void {
    this.#expect(previous, previous);
  }

  /**
   * Creates or replaces. `previous` is the version that the writer has seen (none: create); when it
   * is no longer the latest, throws `StaleWriteError` at once. Sets `metadata.resourceVersion`, and
   * keeps `object`: the caller must not change it afterwards. With `growth`, throws a `StoreQuotaError` at once when there is
   * no room for it; without, the write is the server's own, and small.
   */
  put(
    place: Place,
    previous: StoredObject | undefined,
    object: UnknownObject,
    growth?: Growth,
  ): Promise<StoredObject> {
    this.#expect(place, previous);
    const revision = this.#revision + 1;
    object.metadata.resourceVersion = String(revision);
    const json = JSON.stringify(object);
    if (growth) {
      checkLength(json.length, previous?.json.length ?? 0);
      this.#bytes.check(place.namespace, bytesOf(json) - (previous?.bytes ?? 0), growth);
    }
    this.#revision = revision;
    const current = new StoredObject(place, revision, json, object);
    const collection = this.#collection(place.collection);
    collection.objects.set(current.key, current);
    this.#count(place.collection, previous, current);
    if (previous) this.snapshots.note(previous.namespace, previous.bytes);
    if (!previous) collection.sorted = undefined;
    const type = previous ? "MODIFIED" : "ADDED";
    return this.#enqueue({ change: { previous, put: current }, previous, current, type });
  }

  /** Removes; resolves with the last state. `StaleWriteError` as with `put`. */
  remove(previous: StoredObject, last: UnknownObject = previous.copy()): Promise<StoredObject> {
    this.#expect(previous, previous);
    const revision = ++this.#revision;
    last.metadata.resourceVersion = String(revision);
    const current = new StoredObject(previous, revision, JSON.stringify(last), last);
    const collection = this.#collection(previous.collection);
    collection.objects.delete(previous.key);
    collection.sorted = undefined;
    this.#count(previous.collection, previous, undefined);
    this.snapshots.note(previous.namespace, previous.bytes);
    return this.#enqueue({ change: { previous }, previous, current, type: "DELETED" });
  }

  /**
   * Calls back with every committed change after the revision `since`, those of the past first.
   * Throws a `StatusError` 410 when it is too long ago. Returns how to stop.
   */
  watch(collection: string, since: number, listener: StoreListener): () => void {
    const { log } = this.#collection(collection);
    for (const event of log.after(since)) listener(event);
    return log.subscribe((event) => {
      if (event.revision > since) listener(event);
    });
  }

  /** Watches cannot begin, nor lists be made, at a revision before this one any more where there are changes up to it. */
  forgetHistory(revision: number): void {
    for (const log of this.#logs) log.forgetBefore(revision + 1, 0);
  }

  /** Calls `look` at a moment when all that is readable is also on disk; writers do not hold it up for long. */
  read<T>(look: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const reader = () => {
        try {
          resolve(look());
        } catch (error) {
          reject(error);
        }
      };
      if (this.#isBusy) this.#readers.push(reader);
      else reader();
    });
  }

  /** Writes all that is acknowledged now, and nothing else, to a new file, which is itself a store. */
  async snapshot(file: string): Promise<void> {
    const { objects, revision } = await this.read(() => ({
      objects: this.collections()
        .sort()
        .flatMap((collection) => this.list(collection)),
      revision: this.#committed,
    }));
    await writeCopy(file, objects, revision);
  }

  /** Leaves out the next `count` versions. Before the first watch only. */
  async advance(count: number): Promise<void> {
    await this.read(() => {
      this.#journal.commit([], this.#revision + count);
      this.#journal.syncNow();
      this.#revision += count;
      this.#committed = this.#revision;
    });
  }

  async close(): Promise<void> {
    await this.read(() => {
      clearTimeout(this.#tidying);
      this.#journal.close();
    });
  }

  #expect({ collection, namespace, name }: Place, previous: StoredObject | undefined): void {
    if (this.get({ collection, namespace, name }) !== previous) {
      throw new StaleWriteError(`${collection} ${keyOf(namespace, name)} has changed`);
    }
  }

  #count(
    collection: string,
    previous: StoredObject | undefined,
    current: StoredObject | undefined,
  ): void {
    this.#bytes.replace(previous, current);
    for (const observer of this.#observers.get(collection) ?? []) observer(previous, current);
  }

  #collection(name: string): Collection {
    let collection = this.#collections.get(name);
    if (!collection) {
      const log = new EventLog(this.#openedAt);
      this.#logs.push(log);
      collection = { objects: new Map(), sorted: undefined, log };
      this.#collections.set(name, collection);
    }
    return collection;
  }

  get #isBusy(): boolean {
    return this.#pending.length > 0 || this.#syncing.length > 0;
  }

  #enqueue(write: Omit<PendingWrite, "resolve" | "reject">): Promise<StoredObject> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ ...write, resolve, reject });
      this.#schedule();
    });
  }

  /** At the end of this turn of the event loop: what comes in with it goes together. */
  #schedule(): void {
    if (this.#isScheduled || this.#syncing.length > 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#commit();
    });
  }

  #commit(): void {
    this.#syncing = this.#taken();
    if (this.#syncing.length === 0) return;
    this.#journal.sync().then(
      () => this.#synced(),
      (error: unknown) =>
        this.#fail([...this.#syncing.splice(0), ...this.#pending.splice(0)], error),
    );
  }

  /** What was pending and is in the journal now; nothing if it did not get there. */
  #taken(): PendingWrite[] {
    const writes = this.#pending.splice(0);
    try {
      this.#journal.commit(
        writes.map(({ change }) => change),
        this.#revision,
      );
      return writes;
    } catch (error) {
      this.#fail(writes, error);
      return [];
    }
  }

  /**
   * While one sync is under way the next writes come into memory: there might never be a moment for readers. With any
   * of them waiting, those writes follow at once, and everybody waits for the disk.
   */
  #synced(): void {
    const writes = this.#syncing.splice(0);
    if (this.#readers.length > 0 && this.#pending.length > 0) {
      const more = this.#taken();
      try {
        this.#journal.syncNow();
        writes.push(...more);
      } catch (error) {
        this.#fail(more, error);
      }
    }
    this.#acknowledge(writes);
    this.#goOn();
  }

  #acknowledge(writes: readonly PendingWrite[]): void {
    for (const write of writes) {
      const { type, current, previous } = write;
      this.#committed = current.revision;
      const { log } = this.#collection(current.collection);
      log.append({ type, revision: current.revision, current, previous });
      write.resolve(current);
      if (type === "DELETED") this.#tidyLater();
    }
    boundHistories(this.#logs, this.#committed);
  }

  /** Returns the space that removals have freed to the system, little by little, in moments without writes. */
  #tidyLater(): void {
    if (this.#tidying) return;
    this.#tidying = setTimeout(() => {
      this.#tidying = undefined;
      this.read(() => this.#journal.giveBackRoom()).then(
        (isMore) => isMore && this.#tidyLater(),
        // A disk that is full or has failed: what writes say of it is enough.
        () => {},
      );
    }, tidyAfterMs);
    this.#tidying.unref();
  }

  #fail(writes: readonly PendingWrite[], error: unknown): void {
    this.#undo(writes);
    for (const write of writes) write.reject(error);
    this.#goOn();
  }

  #goOn(): void {
    if (this.#pending.length > 0) this.#schedule();
    else for (const reader of this.#readers.splice(0)) reader();
  }

  /** Nothing of a failed commit may be read as if it had happened. */
  #undo(writes: readonly PendingWrite[]): void {
    for (const { current, previous, type } of writes.toReversed()) {
      const collection = this.#collection(current.collection);
      this.#count(current.collection, type === "DELETED" ? undefined : current, previous);
      if (previous) collection.objects.set(current.key, previous);
      else collection.objects.delete(current.key);
      collection.sorted = undefined;
    }
  }
}
