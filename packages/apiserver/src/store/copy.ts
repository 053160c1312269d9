import { closeSync, openSync } from "node:fs";
import { open } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as turn } from "node:timers/promises";
import { migrate } from "./schema-versions.ts";
import { type StoredObject } from "./stored-object.ts";

/** Text written between two turns of the event loop: one or two milliseconds' worth. */
const sliceLength = 256 * 1024;

/**
 * Writes objects as a store of their own to a file that must not exist yet; resolves when it is synced.
 * From memory, for a database that one process has for itself (`locking_mode = EXCLUSIVE`) cannot be read
 * by a second connection; in slices, for others' requests are not to wait until it is done.
 */
export async function writeCopy(
  file: string,
  objects: readonly StoredObject[],
  revision: number,
): Promise<void> {
  // Secrets are among them.
  closeSync(openSync(file, "wx", 0o600));
  const database = new DatabaseSync(file);
  try {
    // A client that is cut off before the end discards the file.
    database.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
    migrate(database);
    database.exec("BEGIN");
    const put = database.prepare("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)");
    let sum = 0;
    let written = 0;
    for (const object of objects) {
      const { collection, namespace, name, revision: version, json } = object;
      const checksum = object.checksum();
      put.run(collection, namespace, name, version, checksum, json);
      sum ^= checksum;
      written += json.length;
      if (written < sliceLength) continue;
      written = 0;
      await turn();
    }
    database
      .prepare("UPDATE meta SET revision = ?, count = ?, checksum = ?")
      .run(revision, objects.length, sum >>> 0);
    database.exec("COMMIT");
  } finally {
    database.close();
  }
  const handle = await open(file, "r+");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
