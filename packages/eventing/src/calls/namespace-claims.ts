import {
  type Clock,
  Informer,
  isNotFound,
  type KubeClient,
  type Logger,
  type Namespace,
  resources,
  silentLogger,
  StatusError,
} from "@spry/kube";
import { type Queue } from "@spry/queue";
import { callBucket, keyBucket } from "./call.ts";
import { waitsBucket } from "./waits.ts";

/** Records: the uid of the namespace that calls and schedules are of. */
const bucket = "namespaces";
const schedulesBucket = "schedules";
/** A namespace that was deleted is not created and used again within this time. */
const knownMs = 1_000;
const pageSize = 500;
const askingMs = 5_000;
const maxGone = 10_000;
/** On a cluster: for so long a namespace is taken for the one that was last seen, while the API server cannot be asked. */
export const clusterTrustMs = 600_000;

export interface LastKnownOptions {
  client: KubeClient;
  clock: Clock;
  /** For how long the API server may be away; on one machine, where nothing changes meanwhile, for ever. */
  trustMs: number;
  log?: Logger;
  signal: AbortSignal;
}

/** Who namespaces were when the API server was last heard of; only what is watched all the time can say that. */
export class LastKnownNamespaces {
  readonly #cache: Informer<Namespace>;
  readonly #clock: Clock;
  readonly #trustMs: number;
  /** Those that the API server has said do not exist, with what the cache had of them then. */
  readonly #gone = new Map<string, string | undefined>();
  /** When the API server last answered, by `Clock.elapsed`. */
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor({ client, clock, trustMs, log = silentLogger, signal }: LastKnownOptions) {
    this.#clock = clock;
    this.#trustMs = trustMs;
    this.#cache = new Informer(client, resources.namespaces, {
      clock,
      log,
      maxRetryMs: 1_000,
      transform: ({ metadata: { name, uid } }) => ({ metadata: { name, uid } }) as Namespace,
    });
    void this.#cache.run(signal);
  }

  /** What the API server has just answered; undefined: it does not exist. */
  heard(namespace: string, uid: string | undefined): void {
    this.#heardAt = this.#clock.elapsed();
    this.#gone.delete(namespace);
    if (uid !== undefined) return;
    if (this.#gone.size >= maxGone) this.#gone.clear();
    this.#gone.set(namespace, this.#cached(namespace));
  }

  /** Undefined: that is not known. */
  uidOf(namespace: string): string | undefined {
    const now = this.#clock.elapsed();
    const since = Math.max(this.#heardAt, this.#cache.lostAt ?? now);
    if (!this.#cache.hasSynced || now - since > this.#trustMs) return undefined;
    const uid = this.#cached(namespace);
    return this.#gone.has(namespace) && this.#gone.get(namespace) === uid ? undefined : uid;
  }

  #cached(namespace: string): string | undefined {
    return this.#cache.get(namespace)?.metadata.uid;
  }
}

interface Known {
  at: number;
  claimed: Promise<void>;
}

/**
 * Calls are kept by the name of their namespace. One that was deleted and created again, perhaps for another tenant, inherits
 * nothing: what is kept under its name is removed when its uid is another one.
 */
export class NamespaceClaims {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #lastKnown: LastKnownNamespaces | undefined;
  readonly #known = new Map<string, Known>();

  /** Without `lastKnown`, a namespace is known only while the API server can be asked. */
  constructor(client: KubeClient, clock: Clock, lastKnown?: LastKnownNamespaces) {
    this.#client = client;
    this.#clock = clock;
    this.#lastKnown = lastKnown;
  }

  /** Resolves when nothing of an earlier namespace of this name is left. */
  async claim(queue: Queue, namespace: string): Promise<void> {
    const now = this.#clock.elapsed();
    const known = this.#known.get(namespace);
    if (known && now - known.at < knownMs) return known.claimed;
    const before = known?.claimed.catch(() => {}) ?? Promise.resolve();
    const claimed = before.then(() => this.#look(queue, namespace));
    // The latest is the last.
    this.#known.delete(namespace);
    this.#known.set(namespace, { at: now, claimed });
    claimed.catch(() => this.#known.delete(namespace));
    this.#forget(now);
    return claimed;
  }

  /** The namespace that things under this name are of now, after `claim`; undefined where there has been none. */
  async uidOf(queue: Queue, namespace: string): Promise<string | undefined> {
    await this.claim(queue, namespace);
    return this.keptUid(queue, namespace);
  }

  /** The namespace that what is kept under this name is of, without asking whether there is another one by now. */
  keptUid(queue: Queue, namespace: string): Promise<string | undefined> {
    return queue.get(bucket, namespace);
  }

  #forget(now: number): void {
    for (const [namespace, { at }] of this.#known) {
      if (now - at < knownMs) break;
      if (this.#known.size > 1) this.#known.delete(namespace);
    }
  }

  async #look(queue: Queue, namespace: string): Promise<void> {
    const uid = await this.#present(queue, namespace);
    if (uid === undefined) return;
    const kept = await queue.get(bucket, namespace);
    if (kept === uid) return;
    if (kept !== undefined) await removeAll(queue, namespace);
    await queue.put({ bucket, key: namespace, value: uid });
  }

  async #present(queue: Queue, namespace: string): Promise<string | undefined> {
    const signal = AbortSignal.timeout(askingMs);
    try {
      const { metadata } = await this.#client.get(resources.namespaces, {
        name: namespace,
        signal,
      });
      this.#lastKnown?.heard(namespace, metadata.uid);
      return metadata.uid;
    } catch (error) {
      if (isNotFound(error)) {
        this.#lastKnown?.heard(namespace, undefined);
        return undefined;
      }
      const last = isOutage(error) ? this.#lastKnown?.uidOf(namespace) : undefined;
      const kept = last === undefined ? undefined : await this.keptUid(queue, namespace);
      // Where the two differ, it is not certain that the later one is known: nothing is removed for it.
      if (last === undefined || (kept !== undefined && kept !== last)) throw error;
      return last;
    }
  }
}

/** No answer, or one that says nothing about what was asked for. */
const isOutage = (error: unknown): boolean => !(error instanceof StatusError) || error.code >= 500;

/** Without its record a call that still waits is not made. */
async function removeAll(queue: Queue, namespace: string): Promise<void> {
  for (const each of [callBucket(namespace), keyBucket(namespace), waitsBucket(namespace)])
    await removeRecords(queue, each, "");
  await removeRecords(queue, schedulesBucket, `${namespace}/`);
}

async function removeRecords(queue: Queue, from: string, prefix: string): Promise<void> {
  let after = prefix;
  for (;;) {
    const records = await queue.list(from, { after, limit: pageSize });
    const ours = records.filter(({ key }) => key.startsWith(prefix));
    for (const { key } of ours) await queue.remove(from, key);
    const last = ours.at(-1);
    if (!last || ours.length < records.length) return;
    after = last.key;
  }
}
