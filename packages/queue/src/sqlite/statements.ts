import {
  type DatabaseSync,
  type SQLInputValue,
  type StatementResultingChanges,
  type StatementSync,
} from "node:sqlite";
import { maxPageBytes } from "../queue.ts";

/** Each statement is compiled once, at its first use, and kept: there are as many as there are texts of SQL in this folder. */
export class Statements {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  run(sql: string, ...values: SQLInputValue[]): StatementResultingChanges {
    return this.#prepare(sql).run(...values);
  }

  get(sql: string, ...values: SQLInputValue[]): unknown {
    return this.#prepare(sql).get(...values);
  }

  all(sql: string, ...values: SQLInputValue[]): unknown[] {
    return this.#prepare(sql).all(...values);
  }

  iterate(sql: string, ...values: SQLInputValue[]): Iterable<Record<string, unknown>> {
    return this.#prepare(sql).iterate(...values);
  }

  /** Rows until they come to a page; others are not even read. */
  page(
    sql: string,
    values: readonly SQLInputValue[],
    bytesOf: (row: Record<string, unknown>) => number,
  ): Record<string, unknown>[] {
    const rows: Record<string, unknown>[] = [];
    let bytes = 0;
    for (const row of this.#prepare(sql).iterate(...values)) {
      rows.push(row);
      bytes += bytesOf(row);
      if (bytes >= maxPageBytes) break;
    }
    return rows;
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (!statement) this.#prepared.set(sql, (statement = this.#database.prepare(sql)));
    return statement;
  }
}
