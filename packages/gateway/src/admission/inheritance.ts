import { type Clock, type ObjectKey } from "@spry/kube";
import { type Entry } from "./ledger.ts";

export interface InheritanceDeps {
  clock: Clock;
  timeoutMsOf: (revision: ObjectKey) => number;
  /** See `AdmissionDeps.counted`. */
  counted: (revision: ObjectKey, change: number) => void;
  onEnd: (entry: Entry) => void;
}

interface Inherited {
  entry: Entry;
  /** The gateway that reports its end, and counts it for the scaler. */
  reporter: string | undefined;
  cancel: () => void;
}

/** Requests that other gateways have sent to Pods: they run until their gateway says that they have ended, or for their Revision's time. */
export class Inheritance {
  readonly #deps: InheritanceDeps;
  readonly #all = new Map<string, Inherited>();

  constructor(deps: InheritanceDeps) {
    this.#deps = deps;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  *entries(): Generator<Entry> {
    for (const { entry } of this.#all.values()) yield entry;
  }

  /** `reporter`: the gateway whose reports of their ends are heard. */
  take(entries: readonly Entry[], reporter: string | undefined): void {
    for (const entry of entries) {
      if (this.#all.has(entry.id)) continue;
      const inherited: Inherited = { entry, reporter, cancel: () => {} };
      this.#all.set(entry.id, inherited);
      if (reporter === undefined) this.#time(inherited);
    }
  }

  end(id: string): void {
    const inherited = this.#all.get(id);
    if (!inherited) return;
    inherited.cancel();
    this.#all.delete(id);
    const { entry, reporter } = inherited;
    if (reporter === undefined) this.#deps.counted(entry.revision, -entry.places);
    this.#deps.onEnd(entry);
  }

  /** The gateway of that identity is not heard any more. */
  silent(identity: string): void {
    for (const inherited of this.#all.values())
      if (inherited.reporter === identity) this.#time(inherited);
  }

  placesOf(revision: ObjectKey): Map<string, number> {
    const places = new Map<string, number>();
    for (const { entry } of this.#all.values()) {
      if (entry.revision !== revision) continue;
      places.set(entry.pod, (places.get(entry.pod) ?? 0) + entry.places);
    }
    return places;
  }

  close(): void {
    for (const { cancel } of this.#all.values()) cancel();
    this.#all.clear();
  }

  #time(inherited: Inherited): void {
    const { clock, timeoutMsOf, counted } = this.#deps;
    const { id, revision, places } = inherited.entry;
    inherited.reporter = undefined;
    inherited.cancel = clock.after(timeoutMsOf(revision), () => this.end(id));
    counted(revision, places);
  }
}
