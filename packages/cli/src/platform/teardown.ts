import { type Logger } from "@spry/kube";

type Step = () => Promise<void> | void;

/** What has been started, and how each of it is ended: in reverse order, whatever fails on the way. */
export class Teardown {
  readonly #steps: Step[] = [];
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  add(step: Step): void {
    this.#steps.push(step);
  }

  /** Ends everything that was added; a failure is logged. */
  async run(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        this.#log.error({ error }, "stopping a component failed");
      }
    }
  }
}
