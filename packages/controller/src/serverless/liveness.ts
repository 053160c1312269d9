import { type Controller } from "@spry/kube";

/**
 * Whether the control loops make progress: what the controller's liveness probe asks (docs/compatibility.md#manager).
 * A controller that is stuck is restarted by the kubelet, and rebuilds its state from the API.
 */
export class Liveness {
  /** How long a loop may take until it can take up something new (`healthzLivenessTimeout`). */
  timeoutMs = 10_000;
  readonly #loops = new Set<Controller>();

  /** Asked about until the signal is aborted. */
  watch(loop: Controller, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#loops.add(loop);
    signal.addEventListener("abort", () => this.#loops.delete(loop), { once: true });
  }

  /** The names of the loops that are stuck. Without any loop, as in a replica that does not lead, there are none. */
  async stuck(): Promise<string[]> {
    const loops = [...this.#loops];
    const moving = await Promise.all(loops.map((loop) => loop.moves(this.timeoutMs)));
    return loops.filter((_, index) => !moving[index]).map(({ name }) => name);
  }
}
