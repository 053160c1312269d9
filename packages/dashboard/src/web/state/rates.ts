/** Rates and latencies from counters that are read at intervals. */

/** What the gateway has counted for a Function since the gateway started (server/function-metrics.ts). */
export interface Counters {
  requests: Record<string, number>;
  buckets: [bound: string, count: number][];
  coldStarts: number;
}

export interface Rates {
  requestsPerSecond: number | null;
  errorsPerSecond: number | null;
  /** Milliseconds, for the requests since the previous reading; null without requests. */
  p50: number | null;
  p95: number | null;
  p99: number | null;
  coldStarts: number | null;
}

export const noRates: Rates = {
  requestsPerSecond: null,
  errorsPerSecond: null,
  p50: null,
  p95: null,
  p99: null,
  coldStarts: null,
};

/** What has happened between two readings of the counters. The first reading alone gives nothing. */
export function ratesOf(
  before: { time: number; counters: Counters } | undefined,
  now: { time: number; counters: Counters },
): Rates {
  if (!before) return noRates;
  const seconds = Math.max(now.time - before.time, 0.001);
  // A gateway that has been restarted counts from zero.
  const since = (a: number | undefined, b: number) => (b >= (a ?? 0) ? b - (a ?? 0) : b);
  let requests = 0;
  let errors = 0;
  for (const [code, count] of Object.entries(now.counters.requests)) {
    const more = since(before.counters.requests[code], count);
    requests += more;
    if (code.startsWith("5")) errors += more;
  }
  const earlier = new Map(before.counters.buckets);
  const buckets = now.counters.buckets.map(([bound, count]): [number, number] => [
    bound === "+Inf" ? Infinity : Number(bound),
    since(earlier.get(bound), count),
  ]);
  return {
    requestsPerSecond: requests / seconds,
    errorsPerSecond: errors / seconds,
    p50: quantile(buckets, 0.5),
    p95: quantile(buckets, 0.95),
    p99: quantile(buckets, 0.99),
    coldStarts: since(before.counters.coldStarts, now.counters.coldStarts),
  };
}

/** In milliseconds, by linear interpolation within the bucket, as Prometheus estimates it; null without requests. */
export function quantile(buckets: [bound: number, count: number][], share: number): number | null {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total === 0) return null;
  const rank = share * total;
  let [lower, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      if (bound === Infinity) return lower * 1000;
      const part = count === below ? 1 : (rank - below) / (count - below);
      return (lower + (bound - lower) * part) * 1000;
    }
    [lower, below] = [bound, count];
  }
  return null;
}
