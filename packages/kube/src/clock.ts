/** Time as a dependency, so that tests own it. */
export interface Clock {
  /** Milliseconds since the epoch, as the machine's clock says, which may be set at any time. */
  now(): number;
  /** Milliseconds since some moment of the past, on a clock that is never set: for durations, and for what is waited for in memory. */
  elapsed(): number;
  /** Calls back once after `ms`; the returned function cancels. Never keeps the process alive. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
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

const watchMs = 5_000;
/** Less is a clock that is being adjusted, not set. */
const leastJumpMs = 500;

/**
 * Calls back when the machine's clock has been set, with by how many milliseconds (negative: back), within five seconds; until the
 * signal is aborted. A machine that has slept counts as one whose clock was set forward.
 */
export function onClockSet(
  clock: Clock,
  callback: (byMs: number) => void,
  signal: AbortSignal,
): void {
  const read = clockJumps(clock);
  let cancel = () => {};
  const look = () => {
    if (signal.aborted) return;
    const byMs = read();
    if (byMs !== 0) callback(byMs);
    cancel = clock.after(watchMs, look);
  };
  signal.addEventListener("abort", () => cancel(), { once: true });
  look();
}

/** Each call returns by how much the clock has been set since the last one: 0 if it has not. */
export function clockJumps(clock: Clock): () => number {
  let offset = clock.now() - clock.elapsed();
  return () => {
    const present = clock.now() - clock.elapsed();
    const byMs = Math.round(present - offset);
    offset = present;
    return Math.abs(byMs) < leastJumpMs ? 0 : byMs;
  };
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
