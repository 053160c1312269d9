import { type Clock, type Logger, messageOf } from "@spry/kube";
import { type StoredObject } from "../../store/stored-object.ts";
import { StaleWriteError, type Store } from "../../store/store.ts";

const collection = "/events";
const sweepMs = 60_000;
/** So many are removed at a time, so that other writes are not held up. */
const batch = 500;

export interface EventLimits {
  /** Since their last write: kube-apiserver's `--event-ttl`, by default. */
  ttlMs: number;
  /** Of all namespaces together. */
  max: number;
}

const defaults: EventLimits = { ttlMs: 3_600_000, max: 10_000 };

interface Dependencies {
  store: Store;
  clock: Clock;
  log: Logger;
}

/**
 * Removes Events an hour after their last write. When there are too many, the namespace with the most Events loses its oldest
 * ones, so that a busy namespace does not displace the Events of the others.
 */
export class EventKeeper {
  readonly #deps: Dependencies;
  readonly #limits: EventLimits;
  /** Of each namespace, by when they were written last: oldest first. */
  readonly #namespaces = new Map<string, Map<string, number>>();
  #count = 0;
  #running: Promise<void> | undefined;
  #stops: (() => void)[] = [];
  #stopped = false;

  constructor(deps: Dependencies, limits: EventLimits = defaults) {
    this.#deps = deps;
    this.#limits = limits;
  }

  start(): void {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const known = store.list(collection).map((stored) => ({ stored, at: lastWrite(stored, now) }));
    for (const { stored, at } of known.sort((a, b) => a.at - b.at)) this.#add(stored, at);
    this.#stops = [
      store.watch(collection, store.revision, ({ type, current }) => {
        this.#remove(current);
        if (type !== "DELETED") this.#add(current, clock.now());
        if (this.#count > this.#limits.max + batch) this.#sweep();
      }),
    ];
    this.#sweepLater();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    await this.#running;
  }

  #add({ namespace, name }: StoredObject, at: number): void {
    let events = this.#namespaces.get(namespace);
    if (!events) this.#namespaces.set(namespace, (events = new Map()));
    events.set(name, at);
    this.#count++;
  }

  #remove({ namespace, name }: Pick<StoredObject, "namespace" | "name">): void {
    const events = this.#namespaces.get(namespace);
    if (!events?.delete(name)) return;
    this.#count--;
    if (events.size === 0) this.#namespaces.delete(namespace);
  }

  #sweepLater(): void {
    this.#stops[1] = this.#deps.clock.after(sweepMs, () => {
      this.#sweep();
      this.#sweepLater();
    });
  }

  #sweep(): void {
    this.#running ??= this.#removeAll()
      .catch((error: unknown) =>
        this.#deps.log.warn({ error: messageOf(error) }, "removing old Events failed"),
      )
      .finally(() => (this.#running = undefined));
  }

  async #removeAll(): Promise<void> {
    const { store } = this.#deps;
    while (!this.#stopped) {
      const due = this.#due();
      if (due.length === 0) return;
      await Promise.all(
        due.map(async (place) => {
          const stored = store.get({ collection, ...place });
          // Once it is gone, the watch forgets it; one that a full disk keeps stays where it is, and comes first the next time.
          if (stored) await store.remove(stored).catch(unlessStale);
          else this.#remove(place);
        }),
      );
    }
  }

  #due(): { namespace: string; name: string }[] {
    const due: { namespace: string; name: string }[] = [];
    const before = this.#deps.clock.now() - this.#limits.ttlMs;
    for (const [namespace, events] of this.#namespaces) {
      for (const [name, at] of events) {
        if (at > before) break;
        if (due.push({ namespace, name }) === batch) return due;
      }
    }
    if (due.length > 0) return due;
    const excess = Math.min(this.#count - this.#limits.max, batch);
    if (excess <= 0) return due;
    const [largest] = [...this.#namespaces].sort(([, a], [, b]) => b.size - a.size);
    const [namespace = "", events] = largest ?? [];
    for (const name of events?.keys() ?? []) {
      due.push({ namespace, name });
      if (due.length === excess) break;
    }
    return due;
  }
}

/** Written once more meanwhile, it comes again. */
function unlessStale(error: unknown): void {
  if (!(error instanceof StaleWriteError)) throw error;
}

/** The latest of the times in its text; its fields differ between the two groups. */
function lastWrite({ json }: StoredObject, now: number): number {
  let last = 0;
  for (const [, time = ""] of json.matchAll(/:"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"/g))
    last = Math.max(last, Date.parse(time) || 0);
  return last === 0 ? now : Math.min(last, now);
}
