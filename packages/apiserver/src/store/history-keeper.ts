import { type Clock } from "@spry/kube";
import { type Store } from "./store.ts";

const intervalMs = 60_000;
/** As long as on a cluster: kube-apiserver has etcd forget what is older (`--etcd-compaction-interval`). */
const intervalsKept = 5;

/**
 * Forgets changes after five minutes. Their number and size are bounded anyway (`EventLog`), but after a busy time
 * the bound would be held for good, by a platform that has nothing to do any more.
 */
export class HistoryKeeper {
  readonly #store: Store;
  readonly #clock: Clock;
  /** The latest revision at the end of each interval, oldest first. */
  readonly #revisions: number[] = [];
  #cancel = () => {};

  constructor({ store, clock }: { store: Store; clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
  }

  start(): void {
    this.#cancel = this.#clock.after(intervalMs, () => {
      this.#revisions.push(this.#store.committed);
      if (this.#revisions.length > intervalsKept)
        this.#store.forgetHistory(this.#revisions.shift() ?? 0);
      this.start();
    });
  }

  stop(): void {
    this.#cancel();
  }
}
