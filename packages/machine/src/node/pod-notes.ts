import { type Clock } from "@spry/kube";

/** What follows from a status is written by others within this time, and waits for no Event. */
const delayMs = 100;

/**
 * Events of a Pod, in their order. Those of a pass are recorded after the status that it leads to: each write waits for the disk and
 * for the write before it, and a request may wait for the status.
 */
export class PodNotes {
  readonly #clock: Clock;
  #isPassing = false;
  #later: (() => void)[] = [];
  #cancel: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  beginPass(): void {
    this.#isPassing = true;
  }

  /** `statusWritten` resolves when the status of this pass has been written; `isRunning` is false once the Pod is being ended. */
  endPass(statusWritten: () => Promise<unknown>, isRunning: () => boolean): void {
    this.#isPassing = false;
    if (this.#later.length === 0) return;
    void statusWritten().then(() => this.#flushAfter(isRunning() ? delayMs : 0));
  }

  /** At once, unless others wait. */
  add(record: () => void): void {
    if (this.#isPassing || this.#later.length > 0) this.#later.push(record);
    else record();
  }

  /** Records what still waits. */
  flush(): void {
    this.#cancel();
    for (const record of this.#later.splice(0)) record();
  }

  #flushAfter(ms: number): void {
    this.#cancel();
    if (ms > 0) this.#cancel = this.#clock.after(ms, () => this.flush());
    else this.flush();
  }
}
