import {
  type Clock,
  deepEqual,
  isNotFound,
  type KubeClient,
  type Logger,
  mergePatchBetween,
  messageOf,
  type Pod,
  resources,
} from "@spry/kube";
import { PassLoop } from "./pass-loop.ts";

type PodStatus = NonNullable<Pod["status"]>;

const firstRetryMs = 50;
const lastRetryMs = 5_000;

/**
 * Writes one Pod's status: nothing that is written already, one write at a time, and of several
 * changes during a write only the last.
 */
export class StatusWriter {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #pod: Pod;
  #written: PodStatus;
  #wanted: PodStatus;
  readonly #writes = new PassLoop(() => this.#writeWanted());
  #closed = false;

  constructor(options: { client: KubeClient; clock: Clock; log: Logger; pod: Pod }) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#pod = options.pod;
    this.#written = options.pod.status ?? {};
    this.#wanted = this.#written;
  }

  /** What was last asked to be written. */
  get latest(): PodStatus {
    return this.#wanted;
  }

  write(status: PodStatus): void {
    if (this.#closed || deepEqual(status, this.#wanted)) return;
    this.#wanted = status;
    this.#writes.wake();
  }

  /** Resolves when everything asked for has been written. */
  async flushed(): Promise<void> {
    await this.#writes.settled();
  }

  close(): void {
    this.#closed = true;
  }

  async #writeWanted(): Promise<void> {
    let retryMs = firstRetryMs;
    while (!this.#closed && !deepEqual(this.#wanted, this.#written)) {
      const status = this.#wanted;
      try {
        await this.#patch(status);
        this.#written = status;
        retryMs = firstRetryMs;
      } catch (error) {
        if (isNotFound(error)) return this.close();
        this.#log.warn(
          { pod: this.#pod.metadata.name, error: messageOf(error) },
          "writing Pod status failed, trying again",
        );
        const pause = Promise.withResolvers<void>();
        this.#clock.after(retryMs, pause.resolve);
        await pause.promise;
        retryMs = Math.min(retryMs * 2, lastRetryMs);
      }
    }
  }

  async #patch(status: PodStatus): Promise<void> {
    const { namespace, name = "", uid } = this.#pod.metadata;
    const change = mergePatchBetween(this.#written, status) as Partial<PodStatus> | undefined;
    if (!change) return;
    await this.#client.patch(
      resources.pods,
      { namespace, name },
      // The uid makes it fail on another Pod of the same name.
      { metadata: { uid }, status: change },
      { subresource: "status" },
    );
  }
}
