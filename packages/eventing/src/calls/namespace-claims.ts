import { type Clock, isNotFound, type KubeClient, resources } from "@spry/kube";
import { type Queue } from "@spry/queue";
import { callBucket, keyBucket } from "./call.ts";

/** Records: the uid of the namespace that calls and schedules are of. */
const bucket = "namespaces";
const schedulesBucket = "schedules";
/** A namespace that was deleted is not created and used again within this time. */
const knownMs = 1_000;
const pageSize = 500;

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
  readonly #known = new Map<string, Known>();

  constructor(client: KubeClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Resolves when nothing of an earlier namespace of this name is left. */
  async claim(queue: Queue, namespace: string): Promise<void> {
    const now = this.#clock.now();
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
    return queue.get(bucket, namespace);
  }

  #forget(now: number): void {
    for (const [namespace, { at }] of this.#known) {
      if (now - at < knownMs) break;
      if (this.#known.size > 1) this.#known.delete(namespace);
    }
  }

  async #look(queue: Queue, namespace: string): Promise<void> {
    const uid = await this.#present(namespace);
    if (uid === undefined) return;
    const kept = await queue.get(bucket, namespace);
    if (kept === uid) return;
    if (kept !== undefined) await removeAll(queue, namespace);
    await queue.put({ bucket, key: namespace, value: uid });
  }

  async #present(namespace: string): Promise<string | undefined> {
    try {
      return (await this.#client.get(resources.namespaces, { name: namespace })).metadata.uid;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** Without its record a call that still waits is not made. */
async function removeAll(queue: Queue, namespace: string): Promise<void> {
  for (const each of [callBucket(namespace), keyBucket(namespace)])
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
