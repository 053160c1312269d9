/**
 * Work that looks at how things are, asked for whenever they may have changed: one pass at a time, and after any `wake`
 * another one that begins later, however close to the end of the one under way it came.
 */
export class PassLoop {
  readonly #pass: () => Promise<void>;
  #again = false;
  #ended = false;
  #running: Promise<void> | undefined;

  /** `pass` must not throw. */
  constructor(pass: () => Promise<void>) {
    this.#pass = pass;
  }

  /** When none is under way a pass begins before this returns. */
  wake(): void {
    if (this.#ended) return;
    this.#again = true;
    if (!this.#running) void this.#run();
  }

  /** Resolves when no pass is under way or asked for. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** No further pass begins. */
  end(): void {
    this.#ended = true;
  }

  async #run(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#running = promise;
    while (this.#again && !this.#ended) {
      this.#again = false;
      await this.#pass();
    }
    // In the same step as the last look at what was asked for: a reaction to a promise would come after other callers.
    this.#running = undefined;
    resolve();
  }
}
