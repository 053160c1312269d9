import { mkdirSync } from "node:fs";
import path from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { StoredObject } from "./stored-object.ts";

/** A change to make durable: the new version of an object, or its removal. */
export interface Change {
  put?: StoredObject;
  remove?: StoredObject;
}

const schemaVersion = 1;

/**
 * Objects on disk. `commit` returns when the changes are there for good: the journal is synced
 * (WAL with synchronous=FULL), so that neither a crash nor a power cut undoes them.
 */
export class SqliteJournal {
  readonly #database: DatabaseSync;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #setRevision: StatementSync;

  /** `dataDir` is created when missing; ":memory:" keeps nothing. */
  constructor(dataDir: string) {
    const memory = dataDir === ":memory:";
    if (!memory) mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const file = memory ? dataDir : path.join(dataDir, "state.db");
    this.#database = open(file);
    this.#put = this.#database.prepare(
      "INSERT INTO objects VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET revision = excluded.revision, json = excluded.json",
    );
    this.#remove = this.#database.prepare(
      "DELETE FROM objects WHERE collection = ? AND namespace = ? AND name = ?",
    );
    this.#setRevision = this.#database.prepare("UPDATE meta SET revision = ?");
  }

  /** The latest revision ever given out, that of a removal included. */
  revision(): number {
    return Number(this.#database.prepare("SELECT revision FROM meta").get()?.revision ?? 0);
  }

  *objects(): Generator<StoredObject> {
    const rows = this.#database
      .prepare("SELECT * FROM objects ORDER BY collection, namespace, name")
      .iterate();
    for (const row of rows) {
      const { collection, namespace, name } = row as Record<string, string>;
      yield new StoredObject(
        { collection: collection ?? "", namespace: namespace ?? "", name: name ?? "" },
        Number(row.revision),
        String(row.json),
      );
    }
  }

  commit(changes: readonly Change[], revision: number): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      for (const { put, remove } of changes) {
        if (put) this.#put.run(put.collection, put.namespace, put.name, put.revision, put.json);
        if (remove) this.#remove.run(remove.collection, remove.namespace, remove.name);
      }
      this.#setRevision.run(revision);
      this.#database.exec("COMMIT");
    } catch (cause) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw new Error("writing to the store", { cause });
    }
  }

  close(): void {
    this.#database.close();
  }
}

function open(file: string): DatabaseSync {
  try {
    const database = new DatabaseSync(file, { timeout: 1000 });
    // One process owns the store: no second engine on the same directory, and no shared-memory file.
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    const version = Number(database.prepare("PRAGMA user_version").get()?.user_version ?? 0);
    if (version > schemaVersion) {
      throw new Error(`it is of a newer version (${version}) than this program knows`);
    }
    if (version === 0) {
      database.exec(`
        BEGIN;
        CREATE TABLE objects (
          collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
          revision INTEGER NOT NULL, json TEXT NOT NULL,
          PRIMARY KEY (collection, namespace, name)
        ) WITHOUT ROWID;
        CREATE TABLE meta (revision INTEGER NOT NULL);
        INSERT INTO meta VALUES (0);
        PRAGMA user_version = ${schemaVersion};
        COMMIT;
      `);
    }
    return database;
  } catch (cause) {
    throw new Error(`opening the store ${file} (is another engine running on it?)`, { cause });
  }
}
