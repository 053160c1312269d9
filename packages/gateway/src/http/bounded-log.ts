import { type Clock, type Logger } from "@spry/kube";

const windowMs = 1_000;
const linesPerWindow = 20;

/** Lines about requests. Strangers decide how many there are, so that no more than 20 a second are written, and the others counted. */
export class BoundedLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #message: string;
  readonly #further: string;
  #windowStart = Number.NEGATIVE_INFINITY;
  #written = 0;
  #left = 0;

  /** `message`: of each line; `further`: of the one with the number of the others. */
  constructor(
    log: Logger,
    clock: Clock,
    { message, further }: { message: string; further: string },
  ) {
    this.#log = log;
    this.#clock = clock;
    this.#message = message;
    this.#further = further;
  }

  write(fields: object): void {
    const now = this.#clock.elapsed();
    if (now - this.#windowStart >= windowMs) {
      if (this.#left > 0) this.#log.info({ count: this.#left }, this.#further);
      this.#windowStart = now;
      this.#written = this.#left = 0;
    }
    if (this.#written++ < linesPerWindow) this.#log.info(fields, this.#message);
    else this.#left++;
  }
}
