import { type Informer, type Job, type ObjectKey } from "@spry/kube";
import { functionKeyOf } from "../caches.ts";

/** The cached Jobs, as far as slots need them. */
export type JobCache = Pick<Informer<Job>, "list" | "onChange">;

/**
 * At most `max` builds at a time, first come, first served within a namespace. Between namespaces the turn
 * is that of the one with the fewest builds in progress, and of those the one whose last turn is longest ago:
 * a user who applies hundreds of Functions does not make the others wait. Builds in progress are the
 * unfinished Jobs in the cache, plus the places given away whose Job the cache does not show yet. All of
 * this is synchronous, so several workers cannot take one place twice.
 */
export class BuildSlots {
  readonly #max: number;
  readonly #jobs: JobCache;
  readonly #wake: (key: ObjectKey) => void;
  /** In the order in which they came. */
  readonly #waiting = new Set<ObjectKey>();
  readonly #given = new Set<ObjectKey>();
  /** When a namespace had its last turn, as a count of turns. */
  readonly #lastTurn = new Map<string, number>();
  #turns = 0;

  /** `wake` is called with the Function that may try again. */
  constructor(max: number, jobs: JobCache, wake: (key: ObjectKey) => void) {
    this.#max = max;
    this.#jobs = jobs;
    this.#wake = wake;
    jobs.onChange(({ type, object }) => {
      if (type !== "deleted") this.#given.delete(functionKeyOf(object));
      if (type === "deleted" || isFinished(object)) this.#wakeNext();
    });
  }

  /** Those who waited before a restart, the longest first. */
  restore(keys: Iterable<ObjectKey>): void {
    for (const key of keys) this.#waiting.add(key);
  }

  /** Takes a place, or a turn in the queue. The holder of a place must create the Job or `leave`. */
  tryEnter(key: ObjectKey): boolean {
    if (this.#given.has(key)) return true;
    this.#waiting.add(key);
    if (!this.#next(this.#busy(key)).includes(key)) return false;
    this.#waiting.delete(key);
    this.#given.add(key);
    this.#lastTurn.set(namespaceOf(key), ++this.#turns);
    return true;
  }

  /** Gives place or turn back: the Function needs no build any more. */
  leave(key: ObjectKey): void {
    const had = this.#waiting.delete(key);
    if (this.#given.delete(key) || had) this.#wakeNext();
  }

  #wakeNext(): void {
    for (const key of this.#next(this.#busy())) this.#wake(key);
  }

  /** Who of those waiting would get the free places, one after the other. */
  #next(busy: ReadonlySet<ObjectKey>): ObjectKey[] {
    const load = new Map<string, number>();
    const count = (namespace: string) => load.set(namespace, (load.get(namespace) ?? 0) + 1);
    for (const key of busy) count(namespaceOf(key));
    const queues = Map.groupBy(this.#waiting, namespaceOf);
    for (const namespace of this.#lastTurn.keys())
      if (!queues.has(namespace) && !load.has(namespace)) this.#lastTurn.delete(namespace);
    const turns = new Map(this.#lastTurn);
    const chosen: ObjectKey[] = [];
    for (let free = this.#max - busy.size; free > 0 && queues.size > 0; free--) {
      // Maps keep the order in which their keys came, and sorting what is equal keeps it too.
      const [namespace = ""] = [...queues.keys()].sort(
        (a, b) =>
          (load.get(a) ?? 0) - (load.get(b) ?? 0) || (turns.get(a) ?? 0) - (turns.get(b) ?? 0),
      );
      const queue = queues.get(namespace) ?? [];
      chosen.push(...queue.splice(0, 1));
      count(namespace);
      turns.set(namespace, this.#turns + chosen.length);
      if (queue.length === 0) queues.delete(namespace);
    }
    return chosen;
  }

  /** Whose builds are under way; a Function's own does not stand in its way, because it will be replaced. */
  #busy(except?: ObjectKey): Set<ObjectKey> {
    const busy = new Set(this.#given);
    for (const job of this.#jobs.list()) {
      if (!isFinished(job) && !job.metadata.deletionTimestamp) busy.add(functionKeyOf(job));
    }
    if (except !== undefined) busy.delete(except);
    return busy;
  }
}

function namespaceOf(key: ObjectKey): string {
  return key.slice(0, key.indexOf("/"));
}

export function isFinished(job: Job): boolean {
  return (job.status?.conditions ?? []).some(
    ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
  );
}
