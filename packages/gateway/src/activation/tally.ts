/**
 * What the scaler needs to know about a Revision's requests, counted where they pass. Each request is `arrived` once;
 * then it waits, is handled, perhaps waits again, and ends.
 */
export class Tally {
  readonly #now: () => number;
  readonly #changed: (isUrgent: boolean) => void;
  #active = 0;
  #waiting = 0;
  #requests = 0;
  #load = 0;
  #since: number;

  /** `now` is in milliseconds of a clock that never goes back. */
  constructor(now: () => number, changed: (isUrgent: boolean) => void) {
    this.#now = now;
    this.#changed = changed;
    this.#since = now();
  }

  get isIdle(): boolean {
    return this.#active === 0 && this.#waiting === 0;
  }

  /** `isUrgent`: no Pod is ready to handle it. */
  arrived(isUrgent: boolean): void {
    this.#count(0, 1);
    this.#requests++;
    this.#changed(isUrgent);
  }

  /** The last Pod has been lost. */
  stranded(): void {
    if (this.#waiting > 0) this.#changed(true);
  }

  /** A request that waited has been given to a Pod. */
  started(): void {
    this.#count(1, -1);
    this.#changed(false);
  }

  /** A request that a Pod had waits again. */
  stopped(isUrgent: boolean): void {
    this.#count(-1, 1);
    this.#changed(isUrgent);
  }

  ended(wasActive: boolean): void {
    this.#count(wasActive ? -1 : 0, wasActive ? 0 : -1);
    this.#changed(false);
  }

  /** Requests that another gateway has sent to Pods and cannot report any more: so many more of them, or fewer. */
  inherited(change: number): void {
    this.#count(change, 0);
    this.#changed(false);
  }

  /** Totals as of now; `load` is the sum of (active + waiting) × milliseconds. */
  read(): { at: number; active: number; waiting: number; requests: number; load: number } {
    this.#count(0, 0);
    return {
      at: this.#since,
      active: this.#active,
      waiting: this.#waiting,
      requests: this.#requests,
      load: this.#load,
    };
  }

  #count(active: number, waiting: number): void {
    const now = this.#now();
    this.#load += (this.#active + this.#waiting) * (now - this.#since);
    this.#since = now;
    this.#active += active;
    this.#waiting += waiting;
  }
}
