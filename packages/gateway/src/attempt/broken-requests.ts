import { type BrokenRequest } from "@spry/function";
import { type Clock, sleep } from "@spry/kube";

/** A Pod's requests are of interest right after its end. */
const keptMs = 10_000;
/** The kernel closes connections a moment before or after others learn that a process has ended. */
const noticeMs = 100;
const maxPods = 256;
const maxOfPod = 20;
const maxPath = 200;

/** Which requests Pods have broken off lately, so that they can be named in the log of a Pod that has ended. */
export class BrokenRequests {
  readonly #clock: Clock;
  readonly #pods = new Map<string, { request: BrokenRequest; at: number }[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `address`: the Pod's, with its port. */
  note(address: string, { id, method, path }: BrokenRequest): void {
    const ip = address.slice(0, address.lastIndexOf(":"));
    const all = this.#pods.get(ip) ?? [];
    this.#pods.delete(ip);
    this.#pods.set(ip, all);
    const query = path.indexOf("?");
    const shown = (query < 0 ? path : path.slice(0, query)).slice(0, maxPath);
    all.push({ request: { id, method, path: shown }, at: this.#clock.elapsed() });
    if (all.length > maxOfPod) all.shift();
    const [oldest] = this.#pods.keys();
    if (this.#pods.size > maxPods && oldest !== undefined) this.#pods.delete(oldest);
  }

  /** Of the Pod with this address, oldest first; each is returned once. */
  async take(ip: string): Promise<BrokenRequest[]> {
    await sleep(this.#clock, noticeMs);
    const all = this.#pods.get(ip) ?? [];
    this.#pods.delete(ip);
    const since = this.#clock.elapsed() - keptMs;
    return all.filter(({ at }) => at >= since).map(({ request }) => request);
  }
}
