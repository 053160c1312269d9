import { type DatabaseSync } from "node:sqlite";
import { StoredObject } from "./stored-object.ts";

/** The version of the tables, in SQLite's `user_version`. */
export const schemaVersion = 4;

/** Brings tables of an older version (0: none at all) to the present one, in one transaction. */
export function migrate(database: DatabaseSync): void {
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
  if (version === schemaVersion) return;
  // Room of what was removed can be given back bit by bit. Takes effect with the first table, or the VACUUM below.
  database.exec("PRAGMA auto_vacuum = INCREMENTAL");
  database.exec("BEGIN");
  if (version < 1) createTables(database);
  if (version < 2) addChecksums(database);
  if (version < 3) rearrange(database);
  database.exec(`PRAGMA user_version = ${schemaVersion}; COMMIT`);
  // What older tables took is given back.
  if (version > 0) database.exec("VACUUM");
}

function createTables(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE objects (
      collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
      revision INTEGER NOT NULL, json TEXT NOT NULL,
      PRIMARY KEY (collection, namespace, name)
    ) WITHOUT ROWID;
    CREATE TABLE meta (revision INTEGER NOT NULL);
    INSERT INTO meta VALUES (0);
  `);
}

function addChecksums(database: DatabaseSync): void {
  database.exec(`
    ALTER TABLE objects ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE meta ADD COLUMN count INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE meta ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
  `);
  const set = database.prepare(
    "UPDATE objects SET checksum = ? WHERE collection = ? AND namespace = ? AND name = ?",
  );
  let count = 0;
  let total = 0;
  for (const row of database.prepare("SELECT * FROM objects").all()) {
    const { collection = "", namespace = "", name = "", json = "" } = row as Record<string, string>;
    const place = { collection, namespace, name };
    const checksum = new StoredObject(place, Number(row["revision"]), json).checksum();
    set.run(checksum, collection, namespace, name);
    count++;
    total ^= checksum;
  }
  database.prepare("UPDATE meta SET count = ?, checksum = ?").run(count, total >>> 0);
}

/**
 * The text stands last: a column behind one that does not fit its page is found only through all of the text's pages.
 * And the table has row ids: in one without, a row of more than a quarter of a page takes pages of its own, which doubles
 * what is written and read for objects of a kilobyte and more.
 */
function rearrange(database: DatabaseSync): void {
  database.exec(`
    ALTER TABLE objects RENAME TO objects_before;
    CREATE TABLE objects (
      collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
      revision INTEGER NOT NULL, checksum INTEGER NOT NULL, json TEXT NOT NULL,
      PRIMARY KEY (collection, namespace, name)
    );
    INSERT INTO objects SELECT collection, namespace, name, revision, checksum, json FROM objects_before;
    DROP TABLE objects_before;
  `);
}
