/** Time as a dependency, so that tests own it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once after `ms`; the returned function cancels. Never keeps the process alive. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(ms, 0x7fff_ffff));
    // A browser's timers are numbers, and keep nothing alive.
    if (typeof timer === "object") timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or at once when the signal is aborted. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.after(ms, finish);
    signal?.addEventListener("abort", finish, { once: true });
  });
}

/** Kubernetes' `metav1.Time`: RFC 3339, whole seconds, UTC. */
export function timestamp(clock: Clock): string {
  const second = Math.floor(clock.now() / 1000);
  if (second !== latest.second) {
    const text = new Date(second * 1000).toISOString().replace(".000Z", "Z");
    latest = { second, text };
  }
  return latest.text;
}

/** Asked for in every write, and the same for a second. */
let latest = { second: Number.NaN, text: "" };
