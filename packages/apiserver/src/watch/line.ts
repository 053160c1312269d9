import { type Presentation } from "../handlers/presentation.ts";
import { type StoredObject } from "../store/stored-object.ts";

export type EventType = "ADDED" | "MODIFIED" | "DELETED";

/** One event as it goes over the wire, shared by all watches that it waits in. */
export interface Line {
  readonly bytes: Uint8Array;
  /** In how many watches it waits. */
  holders: number;
  /** Lets go of it: the last holder has passed it on. */
  forget(): void;
}

const never = () => {};

/** A line of one watch alone. */
export function ownLine(bytes: Uint8Array): Line {
  return { bytes, holders: 0, forget: never };
}

/** Events of stored objects, each written once in each form for as long as it waits anywhere. */
export class Lines {
  readonly #byObject = new WeakMap<StoredObject, Map<string, Line>>();
  /** Watches hear of a change one right after the other: the latest object's lines are kept. */
  #latest: StoredObject | undefined;

  of(type: EventType, stored: StoredObject, presentation: Presentation): Line {
    if (this.#latest !== stored) {
      if (this.#latest) this.#dropUnheld(this.#latest);
      this.#latest = stored;
    }
    let lines = this.#byObject.get(stored);
    if (!lines) this.#byObject.set(stored, (lines = new Map()));
    const key = `${type} ${presentation.key}`;
    let line = lines.get(key);
    if (!line) {
      const bytes = presentation.encoding.event(type, presentation.one(stored));
      line = { bytes, holders: 0, forget: () => this.#forget(stored, key) };
      lines.set(key, line);
    }
    return line;
  }

  #forget(stored: StoredObject, key: string): void {
    if (stored !== this.#latest) this.#drop(stored, key);
  }

  #dropUnheld(stored: StoredObject): void {
    for (const [key, { holders }] of this.#byObject.get(stored) ?? [])
      if (holders === 0) this.#drop(stored, key);
  }

  #drop(stored: StoredObject, key: string): void {
    const lines = this.#byObject.get(stored);
    lines?.delete(key);
    if (lines?.size === 0) this.#byObject.delete(stored);
  }
}
