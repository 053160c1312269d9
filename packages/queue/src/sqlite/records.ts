import { type WireRecord } from "./protocol.ts";
import { type Statements } from "./statements.ts";

/** Small texts of the queue's user, which are written in the same transaction as messages. */
export class Records {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  put({ bucket, key, value, expiresAt }: WireRecord): void {
    this.#statements.run(
      "INSERT INTO records VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value, expires = excluded.expires",
      bucket,
      key,
      value,
      expiresAt ?? null,
    );
  }

  /** Whether it may be written: it has the value that it is to replace, or the new one already. */
  isStill({ bucket, key, value, replaces }: WireRecord, now: number): boolean {
    if (replaces === undefined) return true;
    const present = this.get(bucket, key, now);
    return present === replaces || present === value;
  }

  /** One that has ended may not have been removed yet. */
  get(bucket: string, key: string, now: number): string | undefined {
    const row = this.#statements.get(
      "SELECT value FROM records WHERE bucket = ? AND key = ? AND (expires IS NULL OR expires > ?)",
      bucket,
      key,
      now,
    ) as { value: string } | undefined;
    return row?.value;
  }

  remove(bucket: string, key: string): void {
    this.#statements.run("DELETE FROM records WHERE bucket = ? AND key = ?", bucket, key);
  }

  list(bucket: string, after: string, limit: number, now: number): WireRecord[] {
    return this.#statements.page(
      "SELECT bucket, key, value, expires AS expiresAt FROM records WHERE bucket = ? AND key > ? AND (expires IS NULL OR expires > ?) ORDER BY key LIMIT ?",
      [bucket, after, now, limit],
      ({ value }) => (value as string).length,
    ) as unknown as WireRecord[];
  }

  removeExpired(now: number): void {
    this.#statements.run("DELETE FROM records WHERE expires IS NOT NULL AND expires <= ?", now);
  }
}
