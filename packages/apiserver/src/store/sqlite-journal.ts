import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import path from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { StatusError } from "@spry/kube";
import { type Acknowledged, AcknowledgedMark } from "./acknowledged-mark.ts";
import { DamagedStoreError } from "./damaged-store-error.ts";
import { migrate, schemaVersion } from "./schema-versions.ts";
import { StoredObject } from "./stored-object.ts";
import { damageOfLog } from "./write-ahead-log.ts";

/** A change to make durable: an object's version that goes, one that comes, or one for the other. */
export interface Change {
  previous?: StoredObject | undefined;
  put?: StoredObject;
}

/** What all objects together must come to: a row that was lost, doubled or set back shows here. */
interface Totals {
  revision: number;
  count: number;
  /** Exclusive or of all checksums. */
  checksum: number;
}

/** Pages of 4 KiB. */
const keptFreePages = 128;
const pagesGivenBack = 256;

export const storeFile = (dataDir: string): string => path.join(dataDir, "state.db");

/**
 * Objects on disk. What `commit` was given is there for good, after a crash as after a power cut, once `sync` or
 * `syncNow` has returned.
 *
 * The syncs are ours and not SQLite's (write-ahead log with synchronous=NORMAL: it syncs the log only before it copies
 * it into the file), because SQLite's would hold up the whole process. The next commit waits for the sync of the one
 * before it: of the log only its last transaction may ever be torn.
 *
 * Every row carries a checksum, and the rows together a sum, so that reading notices what SQLite itself
 * does not look for; a mark next to it says what has been acknowledged, so that a log that was taken away is missed.
 * Throws a `DamagedStoreError` then.
 */
export class SqliteJournal {
  readonly #file: string;
  readonly #database: DatabaseSync;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #setTotals: StatementSync;
  readonly #freePages: StatementSync;
  #totals: Totals;
  readonly #mark: AcknowledgedMark | undefined;
  /** Of the log, once there is one to sync. */
  #log: number | undefined;
  #failure: Error | undefined;

  /** `dataDir` is created when missing; ":memory:" keeps nothing. */
  constructor(dataDir: string) {
    const memory = dataDir === ":memory:";
    this.#file = memory ? dataDir : storeFile(dataDir);
    if (!memory) {
      mkdirSync(dataDir, { recursive: true, mode: 0o700 });
      createIfMissing(this.#file);
    }
    this.#mark = memory ? undefined : new AcknowledgedMark(`${this.#file}-acknowledged`);
    const acknowledged = this.#mark?.read();
    try {
      if (acknowledged) assertLogLength(this.#file, acknowledged);
      this.#database = open(this.#file);
    } catch (error) {
      this.#mark?.close();
      throw error;
    }
    this.#put = this.#database.prepare(
      "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET revision = excluded.revision, json = excluded.json, checksum = excluded.checksum",
    );
    this.#remove = this.#database.prepare(
      "DELETE FROM objects WHERE collection = ? AND namespace = ? AND name = ?",
    );
    this.#setTotals = this.#database.prepare(
      "UPDATE meta SET revision = ?, count = ?, checksum = ?",
    );
    this.#freePages = this.#database.prepare("PRAGMA freelist_count");
    this.#totals = this.#reading(() => {
      const row = this.#database.prepare("SELECT revision, count, checksum FROM meta").get();
      if (!row) throw new DamagedStoreError(this.#file, "its table meta is empty");
      const { revision, count, checksum } = row as Record<keyof Totals, number>;
      if (acknowledged && acknowledged.revision > revision)
        throw missingWrites(this.#file, acknowledged, revision);
      return { revision, count, checksum };
    });
  }

  /** The latest revision ever given out, that of a removal included. */
  revision(): number {
    return this.#totals.revision;
  }

  /** What the rows take on disk, without free pages. */
  bytes(): number {
    const value = (name: string) =>
      Number(Object.values(this.#database.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
    return (value("page_count") - value("freelist_count")) * value("page_size");
  }

  /** All objects, checked. */
  objects(): StoredObject[] {
    return this.#reading(() => {
      const objects: StoredObject[] = [];
      let sum = 0;
      for (const place of this.#places()) {
        for (const [name, revision, checksum, json] of this.#rowsOf(place)) {
          const stored = new StoredObject({ ...place, name }, revision, json);
          if (stored.checksum() !== checksum) {
            throw new DamagedStoreError(
              this.#file,
              `${stored.collection} ${stored.key} is not what was written`,
            );
          }
          sum ^= checksum;
          objects.push(stored);
        }
      }
      const { count, checksum } = this.#totals;
      if (objects.length !== count || sum >>> 0 !== checksum) {
        throw new DamagedStoreError(
          this.#file,
          `it has ${objects.length} objects instead of the ${count} that were written`,
        );
      }
      return objects;
    });
  }

  /** Into the log, all or nothing. Throws when it does not get there, and always after a sync that failed. */
  commit(changes: readonly Change[], revision: number): void {
    if (this.#failure) throw this.#failure;
    let { count, checksum } = this.#totals;
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      for (const { previous, put } of changes) {
        if (previous) {
          count--;
          checksum ^= previous.checksum();
        }
        if (put) {
          const sum = put.checksum();
          count++;
          checksum ^= sum;
          const { collection, namespace, name, revision: version, json } = put;
          this.#put.run(collection, namespace, name, version, sum, json);
        } else if (previous) {
          this.#remove.run(previous.collection, previous.namespace, previous.name);
        }
      }
      const totals = { revision, count, checksum: checksum >>> 0 };
      this.#setTotals.run(totals.revision, totals.count, totals.checksum);
      this.#database.exec("COMMIT");
      this.#totals = totals;
    } catch (cause) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw isFull(cause) ? noSpace(this.#file) : new Error("writing to the store", { cause });
    }
  }

  /**
   * What removals leave is used again; more than a little of it goes back to the system, some at a time: moving pages fills the log.
   * All that was committed must be on disk. Returns whether there is more to give back.
   */
  giveBackRoom(): boolean {
    if (this.#failure) return false;
    const free = Number(this.#freePages.get()?.["freelist_count"] ?? 0) - keptFreePages;
    if (free <= 0) return false;
    this.#database.exec(`PRAGMA incremental_vacuum(${Math.min(free, pagesGivenBack)})`);
    this.syncNow();
    return free > pagesGivenBack;
  }

  /** Resolves when all that was committed before is on disk. */
  async sync(): Promise<void> {
    const log = this.#openLog();
    if (log === undefined) return;
    await new Promise<void>((resolve, reject) =>
      fdatasync(log, (cause) => (cause ? reject(this.#fail(cause)) : resolve())),
    );
    this.#acknowledge(log);
  }

  /** The same, with the whole process waiting. */
  syncNow(): void {
    const log = this.#openLog();
    if (log === undefined) return;
    try {
      fdatasyncSync(log);
    } catch (cause) {
      throw this.#fail(cause);
    }
    this.#acknowledge(log);
  }

  close(): void {
    if (this.#log !== undefined) closeSync(this.#log);
    this.#database.close();
    // Only what is known to be on disk, which after a failed sync is not all that was committed.
    if (!this.#failure) this.#mark?.write({ revision: this.#totals.revision, logBytes: 0 });
    this.#mark?.close();
  }

  /** Nothing is committed between a sync's begin and its end: all that was is on disk. */
  #acknowledge(log: number): void {
    this.#mark?.write({ revision: this.#totals.revision, logBytes: fstatSync(log).size });
  }

  #openLog(): number | undefined {
    if (this.#file === ":memory:") return undefined;
    this.#log ??= openSync(`${this.#file}-wal`, "r+");
    return this.#log;
  }

  /** A system that could not write a page may forget it, and reports that once: only a restart shows what is on disk. */
  #fail(cause: unknown): Error {
    const message = `the disk failed under the store ${this.#file}; it accepts no more writes until it is restarted`;
    return (this.#failure = new Error(message, { cause }));
  }

  /** Collections and namespaces that hold anything. */
  *#places(): Generator<Pick<StoredObject, "collection" | "namespace">> {
    const next = this.#database.prepare(
      "SELECT collection, namespace FROM objects WHERE (collection, namespace) > (?, ?) ORDER BY collection, namespace LIMIT 1",
    );
    let place = { collection: "", namespace: "" };
    for (;;) {
      const row = next.get(place.collection, place.namespace);
      if (!row) return;
      const { collection, namespace } = row as typeof place;
      place = { collection, namespace };
      yield place;
    }
  }

  /** Values of a row and not an object of all its columns: half the time where there are tens of thousands. */
  #rowsOf({ collection, namespace }: Pick<StoredObject, "collection" | "namespace">) {
    const rows = this.#database.prepare(
      "SELECT name, revision, checksum, json FROM objects WHERE collection = ? AND namespace = ? ORDER BY name",
    );
    rows.setReturnArrays(true);
    return rows.iterate(collection, namespace) as unknown as Iterable<
      [name: string, revision: number, checksum: number, json: string]
    >;
  }

  #reading<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      this.#database.close();
      this.#mark?.close();
      throw isDamage(error)
        ? new DamagedStoreError(this.#file, error.message, { cause: error })
        : error;
    }
  }
}

/** A store comes into being whole: one that is there but empty has lost its content. */
function createIfMissing(file: string): void {
  const log = `${file}-wal`;
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === 0) throw new DamagedStoreError(file, "it is empty");
  const damage =
    size === undefined && exists(log) ? `only its log ${log} is left` : damageOfLog(log);
  if (damage) throw new DamagedStoreError(file, damage);
  if (size !== undefined) return;
  const unfinished = `${file}.new`;
  rmSync(unfinished, { force: true });
  const database = new DatabaseSync(unfinished);
  migrate(database);
  database.close();
  sync(unfinished);
  renameSync(unfinished, file);
  sync(path.dirname(file));
}

/** SQLite lets the log grow, and removes it when a store is closed; it never shortens one. */
function assertLogLength(file: string, acknowledged: Acknowledged): void {
  const log = `${file}-wal`;
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  // A missing one may have been removed properly: the revision shows it.
  if (size === 0 || size >= acknowledged.logBytes) return;
  throw new DamagedStoreError(
    file,
    `its log ${log} has ${size} bytes instead of ${acknowledged.logBytes}: the last writes are missing`,
  );
}

function missingWrites(
  file: string,
  acknowledged: Acknowledged,
  revision: number,
): DamagedStoreError {
  const missing = acknowledged.revision - revision;
  return new DamagedStoreError(
    file,
    `its last ${missing} writes, which were acknowledged, are missing: its log ${file}-wal was deleted or shortened`,
  );
}

function exists(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function sync(file: string): void {
  // A directory cannot be opened on Windows, where renaming needs no sync either.
  if (process.platform === "win32") return;
  const descriptor = openSync(file, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}

function open(file: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { timeout: 1000 });
    // One process owns the store: no second engine on the same directory, and no shared-memory file.
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
    if (version > schemaVersion) {
      throw new Error(`it is of a newer version (${version}) than this program knows`);
    }
    if (version === 0 && file !== ":memory:")
      throw new DamagedStoreError(file, "it holds none of the tables of a store");
    database.exec("PRAGMA journal_mode = WAL");
    migrate(database);
    database.exec("PRAGMA synchronous = NORMAL");
    return database;
  } catch (cause) {
    database?.close();
    if (cause instanceof DamagedStoreError) throw cause;
    if (isDamage(cause)) throw new DamagedStoreError(file, cause.message, { cause });
    const hint = isBusy(cause) ? " (is another engine running on it?)" : "";
    throw new Error(`opening the store ${file}${hint}`, { cause });
  }
}

/** Nothing is lost, and nothing has to be restarted: the next write is tried like any other. */
function noSpace(file: string): StatusError {
  return new StatusError({
    code: 507,
    reason: "InsufficientStorage",
    message: `the disk that holds the store ${file} is full: free space on it and try again`,
  });
}

/** Result codes SQLITE_BUSY 5, SQLITE_FULL 13, SQLITE_CORRUPT 11, SQLITE_NOTADB 26; the upper bits refine them. */
const resultCode = (error: unknown) => Number((error as { errcode?: number })?.errcode) & 0xff;
const isBusy = (error: unknown): boolean => resultCode(error) === 5;
const isFull = (error: unknown): boolean => resultCode(error) === 13;
const isDamage = (error: unknown): error is Error => [11, 26].includes(resultCode(error));
