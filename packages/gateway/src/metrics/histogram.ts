import { MemoryBudget } from "../request/memory-budget.ts";

interface Row {
  /** `namespace/name` of the object that it is about; undefined for the rows of all others together. */
  owner: string | undefined;
  count: number;
  sum: number;
  buckets: number[];
}

/** Whether an object still exists; rows of deleted objects are removed. */
export type Exists = (owner: string) => boolean;

/** A Prometheus histogram; rows differ by their labels. No namespace has more rows than it leaves to others. */
export class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  /** Rows that namespaces may still take. */
  readonly #free: MemoryBudget;
  readonly #rows = new Map<string, Row>();

  /** `bounds` in the unit of the values, growing. */
  constructor(name: string, help: string, bounds: readonly number[], maxRows: number) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
    this.#free = new MemoryBudget(maxRows);
  }

  /** `labels` as they are written, `a="b",c="d"`; `otherwise` counts when there are too many rows, and without an owner. */
  observe(owner: string | undefined, labels: string, value: number, otherwise: string): void {
    const row = this.#rows.get(labels) ?? this.#add(owner, labels, otherwise);
    row.count++;
    row.sum += value;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at >= 0) row.buckets[at] = (row.buckets[at] ?? 0) + 1;
  }

  /** Removes the rows of objects that no longer exist. */
  retain(exists: Exists): void {
    for (const [labels, { owner }] of this.#rows) {
      if (owner === undefined || exists(owner)) continue;
      this.#rows.delete(labels);
      this.#free.give(namespaceOf(owner), 1);
    }
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

  #add(newOwner: string | undefined, labels: string, otherwise: string): Row {
    const owner =
      newOwner !== undefined && this.#free.take(namespaceOf(newOwner), 1) ? newOwner : undefined;
    const key = owner === undefined ? otherwise : labels;
    const existing = this.#rows.get(key);
    if (existing) return existing;
    const row = { owner, count: 0, sum: 0, buckets: this.#bounds.map(() => 0) };
    this.#rows.set(key, row);
    return row;
  }
}

const namespaceOf = (owner: string) => owner.slice(0, owner.indexOf("/"));
