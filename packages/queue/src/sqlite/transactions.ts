import { type DatabaseSync } from "node:sqlite";
import { isOfDatabase } from "./failures.ts";
import { Statements } from "./statements.ts";

/** All or nothing: a transaction as a whole, and each of its parts. */
export class Transactions {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #undone: () => void;
  #isSynced: boolean | undefined;

  /** `undone` is called when a part has been undone: what is in memory may be ahead of what is stored. */
  constructor(database: DatabaseSync, undone: () => void) {
    this.#database = database;
    this.#statements = new Statements(database);
    this.#undone = undone;
  }

  /** Synced to disk only if durable. When it throws, nothing of it has happened: the caller loads again what is in memory. */
  whole(isDurable: boolean, work: () => void): void {
    if (this.#isSynced !== isDurable)
      this.#database.exec(`PRAGMA synchronous = ${isDurable ? "FULL" : "NORMAL"}`);
    this.#isSynced = isDurable;
    this.#statements.run("BEGIN IMMEDIATE");
    try {
      work();
      this.#statements.run("COMMIT");
    } catch (error) {
      // Some errors have rolled it back already.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  /**
   * One part of the transaction, which is undone alone when it fails: what one consumer asks for never undoes what another
   * client appends. Returns why; throws what is the database's own failure, and so everyone's.
   */
  part(work: () => void): Error | undefined {
    this.#statements.run("SAVEPOINT part");
    try {
      work();
      this.#statements.run("RELEASE part");
      return undefined;
    } catch (error) {
      if (!this.#database.isTransaction || isOfDatabase(error)) throw error;
      this.#database.exec("ROLLBACK TO part; RELEASE part");
      this.#undone();
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}
