import { randomUUID } from "node:crypto";
import { type CountsLine } from "@spry/function";
import { type Clock, type ObjectKey } from "@spry/kube";
import { Tally } from "../activation/tally.ts";

/** Writes to one scaler; false when it does not keep up and is to be dropped. */
export type CountsWriter = (text: string) => boolean;

const intervalMs = 1_000;
/** Scalers that may listen: the leader, and those that it replaces or that replace it. */
const maxWriters = 16;
/** Tallies of deleted Revisions are kept, so that totals never shrink, as long as there are no more than so many. */
const maxTallies = 20_000;

/** What is counted for Revisions, and those who want to know (`CountsLine` in `@spry/function`). */
export class Counts {
  readonly #gateway = randomUUID();
  readonly #clock: Clock;
  readonly #now: () => number;
  readonly #tallies = new Map<ObjectKey, Tally>();
  readonly #deleted = new Set<ObjectKey>();
  readonly #changed = new Set<ObjectKey>();
  readonly #urgent = new Set<ObjectKey>();
  readonly #writers = new Set<CountsWriter>();
  #cancelTick = () => {};

  /** `now` is in milliseconds of a clock that never goes back. */
  constructor(clock: Clock, now: () => number) {
    this.#clock = clock;
    this.#now = now;
  }

  tallyOf(revision: ObjectKey): Tally {
    this.#deleted.delete(revision);
    const existing = this.#tallies.get(revision);
    if (existing) return existing;
    const tally = new Tally(this.#now, (isUrgent) => this.#note(revision, isUrgent));
    this.#tallies.set(revision, tally);
    this.#note(revision, false);
    return tally;
  }

  /** The Revision has been deleted. */
  forget(revision: ObjectKey): void {
    if (!this.#tallies.has(revision)) return;
    this.#deleted.add(revision);
    for (const key of this.#deleted) {
      if (this.#tallies.size <= maxTallies) return;
      if (!this.#tallies.get(key)?.isIdle) continue;
      this.#tallies.delete(key);
      this.#deleted.delete(key);
    }
  }

  /** Writes a line for each Revision now, and from then on as counts change. False when too many listen already. */
  subscribe(write: CountsWriter): boolean {
    if (this.#writers.size >= maxWriters) return false;
    const lines = [...this.#tallies.keys()].map((revision) => this.#line(revision));
    if (!write(`${lines.join("")}\n`)) return true;
    this.#writers.add(write);
    if (this.#writers.size === 1) this.#scheduleTick();
    return true;
  }

  unsubscribe(write: CountsWriter): void {
    this.#writers.delete(write);
    if (this.#writers.size === 0) this.#cancelTick();
  }

  #note(revision: ObjectKey, isUrgent: boolean): void {
    this.#changed.add(revision);
    if (!isUrgent || this.#writers.size === 0) return;
    // A burst arrives in few turns of the event loop: one line for each of them.
    if (this.#urgent.size === 0) setImmediate(() => this.#flushUrgent());
    this.#urgent.add(revision);
  }

  #flushUrgent(): void {
    const text = [...this.#urgent].map((revision) => this.#line(revision)).join("");
    this.#urgent.clear();
    this.#write(text);
  }

  #scheduleTick(): void {
    this.#cancelTick();
    this.#cancelTick = this.#clock.after(intervalMs, () => {
      const changed = [...this.#changed];
      this.#changed.clear();
      const lines = changed.map((revision) => this.#line(revision));
      // While requests last their load grows.
      for (const revision of changed) {
        if (this.#tallies.get(revision)?.isIdle === false) this.#changed.add(revision);
      }
      this.#write(`${lines.join("")}\n`);
      if (this.#writers.size > 0) this.#scheduleTick();
    });
  }

  #line(revision: ObjectKey): string {
    const tally = this.#tallies.get(revision);
    if (!tally) return "";
    const line: CountsLine = { gateway: this.#gateway, revision, ...tally.read() };
    return `${JSON.stringify(line)}\n`;
  }

  #write(text: string): void {
    for (const write of this.#writers) if (!write(text)) this.unsubscribe(write);
  }
}
