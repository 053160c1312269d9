/** A Prometheus histogram; rows differ by their labels. */
interface Row {
  count: number;
  sum: number;
  buckets: number[];
}

export class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #maxRows: number;
  readonly #rows = new Map<string, Row>();

  /** `bounds` in the unit of the values, growing. */
  constructor(name: string, help: string, bounds: readonly number[], maxRows: number) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
    this.#maxRows = maxRows;
  }

  /** `labels` as they are written, `a="b",c="d"`; `otherwise` counts when there are too many rows. */
  observe(labels: string, value: number, otherwise: string): void {
    const row = this.#rows.get(labels) ?? this.#add(labels, otherwise);
    row.count++;
    row.sum += value;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at >= 0) row.buckets[at] = (row.buckets[at] ?? 0) + 1;
  }

  render(): string[] {
    const name = this.#name;
    const lines = [`# HELP ${name} ${this.#help}`, `# TYPE ${name} histogram`];
    for (const [labels, row] of this.#rows) {
      let sum = 0;
      for (const [i, bound] of this.#bounds.entries()) {
        sum += row.buckets[i] ?? 0;
        lines.push(`${name}_bucket{${labels},le="${bound}"} ${sum}`);
      }
      lines.push(`${name}_bucket{${labels},le="+Inf"} ${row.count}`);
      lines.push(`${name}_sum{${labels}} ${row.sum}`, `${name}_count{${labels}} ${row.count}`);
    }
    return lines;
  }

  #add(labels: string, otherwise: string): Row {
    const key = this.#rows.size < this.#maxRows ? labels : otherwise;
    const existing = this.#rows.get(key);
    if (existing) return existing;
    const row = { count: 0, sum: 0, buckets: this.#bounds.map(() => 0) };
    this.#rows.set(key, row);
    return row;
  }
}
