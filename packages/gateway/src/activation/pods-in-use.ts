import { type Clock } from "@spry/kube";
import { type Backend } from "../attempt/backend.ts";

/** How long a Pod that is being removed may still be among the ready ones, for a watch that is late. */
const lateMs = 3_000;

/** Which Pods have requests under way, by their addresses without ports: what is being removed may be asked about. */
export class PodsInUse {
  /** How many destinations give them new requests. */
  readonly #ready = new Map<string, number>();
  /** They get nothing new, and have something under way. */
  readonly #leaving = new Map<string, Set<Backend>>();
  readonly #watchers = new Set<() => void>();

  entered({ address }: Backend): void {
    const ip = ipOf(address);
    this.#ready.set(ip, (this.#ready.get(ip) ?? 0) + 1);
  }

  /** One that has left, with requests under way, gets new ones again. */
  returned(backend: Backend): void {
    this.ended(backend);
    this.entered(backend);
  }

  left(backend: Backend): void {
    const ip = ipOf(backend.address);
    const others = (this.#ready.get(ip) ?? 1) - 1;
    if (others > 0) this.#ready.set(ip, others);
    else this.#ready.delete(ip);
    if (backend.active > 0)
      this.#leaving.set(ip, (this.#leaving.get(ip) ?? new Set()).add(backend));
    this.#changed();
  }

  /** The last request of one that has left has ended. */
  ended(backend: Backend): void {
    const ip = ipOf(backend.address);
    const all = this.#leaving.get(ip);
    all?.delete(backend);
    if (all?.size === 0) this.#leaving.delete(ip);
    this.#changed();
  }

  /** Resolves when a Pod that is being removed has nothing under way here, or when the signal is aborted. */
  drained(ip: string, clock: Clock, signal: AbortSignal): Promise<void> {
    let isLate = false;
    return new Promise((resolve) => {
      const look = () => {
        const isReady = !isLate && this.#ready.has(ip);
        if (!signal.aborted && (isReady || this.#leaving.has(ip))) return;
        stop();
        this.#watchers.delete(look);
        signal.removeEventListener("abort", look);
        resolve();
      };
      const stop = clock.after(lateMs, () => {
        isLate = true;
        look();
      });
      this.#watchers.add(look);
      signal.addEventListener("abort", look);
      look();
    });
  }

  #changed(): void {
    for (const look of this.#watchers) look();
  }
}

function ipOf(address: string): string {
  return address.slice(0, address.lastIndexOf(":"));
}
