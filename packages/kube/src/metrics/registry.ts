/**
 * Counters, gauges and histograms in Prometheus' text exposition format 0.0.4. Ours, because the usual library
 * takes some 20 MB of memory, which every embedded platform would pay.
 */

export type Labels = Readonly<Record<string, string>>;

/** A number that may go up and down. */
export interface Gauge {
  set(labels: Labels, value: number): void;
  add(labels: Labels, value: number): void;
  /** Forgets the series with these labels. */
  remove(labels: Labels): void;
}

/** A number that only grows. */
export interface Counter {
  increment(labels: Labels): void;
}

/** How often values up to each of its bounds were observed. */
export interface Histogram {
  observe(labels: Labels, value: number): void;
}

interface Definition {
  /** `[a-z_]+`; counters end in `_total`, durations in their unit. */
  name: string;
  help: string;
  /** More series than these are counted together, with every label `other`. */
  maxSeries?: number;
}

const defaultMaxSeries = 10_000;

/** client_golang's `DefBuckets`, in seconds. */
const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The metrics of one process. Each name is defined once. */
export class MetricsRegistry {
  readonly #families = new Map<string, () => string[]>();

  gauge(definition: Definition): Gauge {
    const series = this.#numbers("gauge", definition);
    return {
      set: (labels, value) => void (series.of(labels).value = value),
      add: (labels, value) => void (series.of(labels).value += value),
      remove: (labels) => series.remove(labels),
    };
  }

  counter(definition: Definition): Counter {
    const series = this.#numbers("counter", definition);
    return { increment: (labels) => void series.of(labels).value++ };
  }

  histogram(definition: Definition & { buckets?: readonly number[] }): Histogram {
    const bounds = definition.buckets ?? defaultBuckets;
    const { name } = definition;
    const series = new SeriesSet(definition, () => ({
      sum: 0,
      count: 0,
      counts: bounds.map(() => 0),
    }));
    this.#define("histogram", definition, () =>
      series.all().flatMap(([labels, { sum, count, counts }]) => {
        const buckets = bounds.map((bound, i) => line(`${name}_bucket`, labels, counts[i], bound));
        return [
          ...buckets,
          line(`${name}_bucket`, labels, count, "+Inf"),
          line(`${name}_sum`, labels, sum),
          line(`${name}_count`, labels, count),
        ];
      }),
    );
    return {
      observe(labels, value) {
        const each = series.of(labels);
        each.sum += value;
        each.count++;
        for (const [i, bound] of bounds.entries()) if (value <= bound) each.counts[i]!++;
      },
    };
  }

  /** A number that is asked for at each rendering. */
  ask(type: "gauge" | "counter", definition: Definition, read: () => number): void {
    this.#define(type, definition, () => [line(definition.name, "", read())]);
  }

  render(): string {
    return `${[...this.#families.values()].flatMap((lines) => lines()).join("\n")}\n`;
  }

  #numbers(type: "gauge" | "counter", definition: Definition): SeriesSet<{ value: number }> {
    const series = new SeriesSet(definition, () => ({ value: 0 }));
    this.#define(type, definition, () =>
      series.all().map(([labels, { value }]) => line(definition.name, labels, value)),
    );
    return series;
  }

  #define(type: string, { name, help }: Definition, lines: () => string[]): void {
    if (this.#families.has(name)) throw new Error(`metric ${name} is defined already`);
    this.#families.set(name, () => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${type}`,
      ...lines(),
    ]);
  }
}

/** The series of one metric, by their labels as they are written. */
class SeriesSet<T> {
  readonly #max: number;
  readonly #make: () => T;
  readonly #byLabels = new Map<string, T>();

  constructor({ maxSeries = defaultMaxSeries }: Definition, make: () => T) {
    this.#max = maxSeries;
    this.#make = make;
  }

  all(): [string, T][] {
    return [...this.#byLabels];
  }

  of(labels: Labels): T {
    const text = textOf(labels);
    const known = this.#byLabels.get(text);
    if (known) return known;
    const isFull = this.#byLabels.size >= this.#max;
    const key = isFull ? textOf(mapValues(labels, () => "other")) : text;
    const existing = this.#byLabels.get(key);
    if (existing) return existing;
    const made = this.#make();
    this.#byLabels.set(key, made);
    return made;
  }

  remove(labels: Labels): void {
    this.#byLabels.delete(textOf(labels));
  }
}

function line(
  name: string,
  labels: string,
  value: number | undefined,
  le?: number | "+Inf",
): string {
  const all = [labels, le === undefined ? "" : `le="${le}"`].filter(Boolean).join(",");
  return `${name}${all ? `{${all}}` : ""} ${value ?? 0}`;
}

function textOf(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (each) => escapes[each]!)}"`)
    .join(",");
}

const escapes: Record<string, string> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };

function mapValues(labels: Labels, change: (value: string) => string): Labels {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, change(value)]));
}
