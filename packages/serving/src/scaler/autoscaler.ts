import { type ScaleSpec } from "./scale-spec.ts";

/** What was observed, as averages of the two windows in the metric's unit. */
export interface Observation {
  now: number;
  stable: number;
  panic: number;
  readyPods: number;
}

export interface Suggestion {
  /** Before bounds, grace and retention. */
  pods: number;
  /** What is left of the capacity after load and burst; below 0 the gateway has to buffer. */
  excessBurstCapacity: number;
  panicking: boolean;
}

/**
 * Knative's algorithm (knative.dev/serving/pkg/autoscaler/scaling): so many Pods that each has its target, by the stable
 * window; by the panic window while that asks for twice as many as there are. Pure but for what it remembers of the past.
 */
export class Autoscaler {
  #panicSince: number | undefined;
  #maxPanicPods = 0;
  /** What was suggested within the delay, the newest last, each larger than those after it. */
  #delayed: { at: number; pods: number }[] = [];

  /** One that begins with several Pods panics: it does not know yet whether they are needed, and so keeps them. */
  constructor(now: number, readyPods: number) {
    if (readyPods > 1) {
      this.#panicSince = now;
      this.#maxPanicPods = readyPods;
    }
  }

  suggest(spec: ScaleSpec, { now, stable, panic, readyPods }: Observation): Suggestion {
    const ready = Math.max(1, readyPods);
    // Never less than one more, and never none at all for what is in use.
    const most = Math.ceil(spec.maxScaleUpRate * ready);
    const least = spec.reachable ? Math.floor(ready / spec.maxScaleDownRate) : 0;
    const stableAsked = Math.ceil(stable / spec.target);
    const panicAsked = Math.ceil(panic / spec.target);
    const within = (pods: number) => {
      const bounded = Math.min(Math.max(pods, least), most);
      return pods > 0 ? Math.max(bounded, spec.activationScale) : bounded;
    };
    const byStable = within(stableAsked);
    const byPanic = within(panicAsked);
    this.#updatePanic(now, panicAsked / ready >= spec.panicThreshold, spec.stableWindowMs);
    let pods = byStable;
    if (this.#panicSince !== undefined) {
      this.#maxPanicPods = Math.max(this.#maxPanicPods, byStable, byPanic);
      pods = this.#maxPanicPods;
    }
    if (spec.reachable && spec.scaleDownDelayMs > 0)
      pods = this.#delay(now, pods, spec.scaleDownDelayMs);
    return {
      pods,
      panicking: this.#panicSince !== undefined,
      excessBurstCapacity: burstCapacity(spec, readyPods, panic),
    };
  }

  #updatePanic(now: number, isOver: boolean, stableWindowMs: number): void {
    if (isOver) this.#panicSince = now;
    else if (this.#panicSince !== undefined && this.#panicSince + stableWindowMs < now) {
      this.#panicSince = undefined;
      this.#maxPanicPods = 0;
    }
  }

  /** The largest suggestion of the time of the delay. */
  #delay(now: number, pods: number, delayMs: number): number {
    while ((this.#delayed.at(-1)?.pods ?? Infinity) <= pods) this.#delayed.pop();
    this.#delayed.push({ at: now, pods });
    while ((this.#delayed[0]?.at ?? now) < now - delayMs) this.#delayed.shift();
    return this.#delayed[0]?.pods ?? pods;
  }
}

function burstCapacity(spec: ScaleSpec, readyPods: number, panic: number): number {
  const { targetBurstCapacity: burst, total } = spec;
  if (burst === 0) return 0;
  return burst < 0 ? -1 : Math.floor(readyPods * total - burst - panic);
}
