import { type Informer, type Job, type ObjectKey } from "@spry/kube";
import { functionKeyOf } from "./caches.ts";

/** The cached Jobs, as far as slots need them. */
export type JobCache = Pick<Informer<Job>, "list" | "onChange">;

/**
 * At most `max` builds at a time, first come first served. Builds under way are the unfinished Jobs
 * that the cache shows, plus the places given away whose Job the cache does not show yet. All of
 * this is synchronous, so several workers cannot take one place twice.
 */
export class BuildSlots {
  readonly #max: number;
  readonly #jobs: JobCache;
  readonly #wake: (key: ObjectKey) => void;
  /** In the order in which they came. */
  readonly #waiting = new Set<ObjectKey>();
  readonly #given = new Set<ObjectKey>();

  /** `wake` is told which Function may try again. */
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

  /** Takes a place, or a turn in the queue. Whoever has a place must create the Job or `leave`. */
  tryEnter(key: ObjectKey): boolean {
    if (this.#given.has(key)) return true;
    this.#waiting.add(key);
    let free = this.#free(key);
    for (const next of this.#waiting) {
      if (free-- <= 0) return false;
      if (next !== key) continue;
      this.#waiting.delete(key);
      this.#given.add(key);
      return true;
    }
    return false;
  }

  /** Gives place or turn back: the Function needs no build any more. */
  leave(key: ObjectKey): void {
    const had = this.#waiting.delete(key);
    if (this.#given.delete(key) || had) this.#wakeNext();
  }

  #wakeNext(): void {
    let free = this.#free();
    for (const key of this.#waiting) {
      if (free-- <= 0) return;
      this.#wake(key);
    }
  }

  /** Free places; a Function's own build does not stand in its way, because it will be replaced. */
  #free(except?: ObjectKey): number {
    const busy = new Set(this.#given);
    for (const job of this.#jobs.list()) {
      if (!isFinished(job) && !job.metadata.deletionTimestamp) busy.add(functionKeyOf(job));
    }
    if (except !== undefined) busy.delete(except);
    return this.#max - busy.size;
  }
}

export function isFinished(job: Job): boolean {
  return (job.status?.conditions ?? []).some(
    ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
  );
}
