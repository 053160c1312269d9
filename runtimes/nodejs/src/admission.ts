import { type FunctionResponse } from "./function-response.ts";
import { RequestError } from "./request-error.ts";

/** Lets so many requests at a time through to the Function, and so many more wait for their turn. */
export class Admission {
  readonly #concurrency: number;
  readonly #queueLength: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(concurrency: number, queueLength: number) {
    this.#concurrency = concurrency;
    this.#queueLength = queueLength;
  }

  /** Starts it now or later, or never, if the client goes first. Throws 503 when too many wait. */
  enter(response: FunctionResponse, start: () => void): void {
    if (this.#running < this.#concurrency) return this.#start(response, start);
    if (this.#waiting.size >= this.#queueLength) {
      response.set("retry-after", "1");
      throw new RequestError(503, "too many requests are waiting for the Function");
    }
    const turn = () => {
      response.off("close", leave);
      this.#start(response, start);
    };
    const leave = () => this.#waiting.delete(turn);
    this.#waiting.add(turn);
    response.once("close", leave);
  }

  #start(response: FunctionResponse, start: () => void): void {
    this.#running++;
    response.once("close", () => {
      this.#running--;
      const [next] = this.#waiting;
      if (!next) return;
      this.#waiting.delete(next);
      next();
    });
    start();
  }
}
