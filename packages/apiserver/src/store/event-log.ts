import { gone } from "../errors.ts";
import { type StoredObject } from "./stored-object.ts";

/** A committed change. For a deletion `current` is the last state, with the deletion's revision. */
export interface StoreEvent {
  type: "ADDED" | "MODIFIED" | "DELETED";
  revision: number;
  current: StoredObject;
  previous: StoredObject | undefined;
}

export type StoreListener = (event: StoreEvent) => void;

/** How many changes of one collection a watch may lag behind before it has to list again. */
const maxEvents = 1024;
/** Old versions of objects are kept for that alone, so large ones are kept less long. */
const maxCharacters = 4 * 1024 * 1024;
/** Of all collections together: with dozens of busy ones, each within its own bound, it would come to a hundred megabytes. */
const maxCharactersInAll = 8 * 1024 * 1024;

/**
 * Keeps the histories of all collections within their common bound. Whatever changed longest ago is forgotten first, but only
 * of collections that have more than an equal share: large objects that are written again and again are at their own expense.
 */
export function boundHistories(logs: readonly EventLog[], latest: number): void {
  const characters = () => logs.reduce((sum, log) => sum + log.characters, 0);
  if (characters() <= maxCharactersInAll * 2) return;
  const share = maxCharactersInAll / logs.filter((log) => log.characters > 0).length;
  while (characters() > maxCharactersInAll) {
    const large = logs.filter((log) => log.characters > share);
    const oldest = Math.min(...large.map((log) => log.oldestRevision() ?? latest));
    if (oldest >= latest) return;
    // Half at a time, as within one collection.
    const middle = Math.ceil((oldest + latest) / 2);
    for (const log of large) log.forgetBefore(middle, share);
  }
}

/** The latest changes of one collection, and who wants to hear of the next. */
export class EventLog {
  readonly #history: StoreEvent[] = [];
  #characters = 0;
  readonly #listeners = new Set<StoreListener>();
  /** Changes up to this revision are no longer (or, after a start, not) in the history. */
  #forgotten: number;

  constructor(revision: number) {
    this.#forgotten = revision;
  }

  /** Of the objects in the history. */
  get characters(): number {
    return this.#characters;
  }

  /** Of the change that would be forgotten next. */
  oldestRevision(): number | undefined {
    return this.#history[0]?.revision;
  }

  /** Until no more than so many characters are left. */
  forgetBefore(revision: number, characters: number): void {
    let count = 0;
    let left = this.#characters;
    while (left > characters && (this.#history[count]?.revision ?? Infinity) < revision)
      left -= this.#history[count++]?.current.json.length ?? 0;
    this.#forget(count);
  }

  append(event: StoreEvent): void {
    this.#history.push(event);
    this.#characters += event.current.json.length;
    this.#makeRoom();
    for (const listener of this.#listeners) listener(event);
  }

  /** Changes after `since`; throws a `StatusError` 410 when some of them are forgotten. */
  after(since: number): StoreEvent[] {
    if (since < this.#forgotten) throw gone(since, this.#forgotten);
    let start = this.#history.length;
    while (start > 0 && (this.#history[start - 1]?.revision ?? 0) > since) start--;
    return this.#history.slice(start);
  }

  /** Forgets half at a time, so that it is seldom done. */
  #makeRoom(): void {
    const isFull = this.#history.length > maxEvents * 2 || this.#characters > maxCharacters * 2;
    if (!isFull) return;
    let characters = this.#characters;
    let count = 0;
    while (
      count < this.#history.length - 1 &&
      (this.#history.length - count > maxEvents || characters > maxCharacters)
    ) {
      characters -= this.#history[count++]?.current.json.length ?? 0;
    }
    this.#forget(count);
  }

  #forget(count: number): void {
    const dropped = this.#history.splice(0, count);
    for (const { current } of dropped) this.#characters -= current.json.length;
    this.#forgotten = dropped.at(-1)?.revision ?? this.#forgotten;
  }

  subscribe(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
