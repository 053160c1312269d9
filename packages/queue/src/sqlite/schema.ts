import { type DatabaseSync } from "node:sqlite";

/**
 * `messages` is the log. A consumer has looked at everything up to its `cursor`; what of it is neither acknowledged nor
 * dead is in `pending`. So a message costs one row when it is accepted, however many consumers there are.
 */
const tables = `
CREATE TABLE messages (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  not_before INTEGER,
  subject_hash INTEGER NOT NULL,
  key_hash INTEGER NOT NULL,
  subject TEXT NOT NULL,
  key TEXT NOT NULL,
  attributes TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX messages_by_subject ON messages (subject_hash, position);
CREATE INDEX messages_by_time ON messages (at, key_hash);
CREATE TABLE consumers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  cursor INTEGER NOT NULL,
  options TEXT NOT NULL
) STRICT;
CREATE TABLE pending (
  consumer INTEGER NOT NULL,
  position INTEGER NOT NULL,
  state INTEGER NOT NULL,
  due INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  order_key TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (consumer, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_by_due ON pending (consumer, state, due);
CREATE INDEX pending_by_position ON pending (position);
CREATE INDEX pending_by_order ON pending (consumer, order_key, position) WHERE order_key IS NOT NULL;
CREATE TABLE dead (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  consumer INTEGER NOT NULL,
  buried_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  reason TEXT NOT NULL,
  message TEXT NOT NULL,
  position INTEGER NOT NULL,
  at INTEGER NOT NULL,
  subject TEXT NOT NULL,
  key TEXT NOT NULL,
  attributes TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX dead_by_consumer ON dead (consumer, id);
CREATE TABLE records (
  bucket TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  expires INTEGER,
  PRIMARY KEY (bucket, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX records_by_expiry ON records (expires) WHERE expires IS NOT NULL;
PRAGMA user_version = 3;
`;

/** What the first format had instead: an index of keys, in no order. */
const fromFirst = `
DROP INDEX messages_by_key;
CREATE INDEX messages_by_time ON messages (at, key_hash);
PRAGMA user_version = 2;
`;

/** The second did not tell tries that count from others. */
const fromSecond = `
ALTER TABLE pending ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
PRAGMA user_version = 3;
`;

/** Of rows in `pending`. */
export const pendingState = {
  /** Waits for `due`. */
  waiting: 0,
  /** Handed out. */
  leased: 1,
  /** Waits for an earlier one of its order. */
  held: 2,
} as const;

/** The subject of redriven messages: no consumer chooses them by it. */
export const privateHash = 0;

/** Creates what is missing; what was handed out when the process ended is handed out again. */
export function prepare(database: DatabaseSync): void {
  database.exec(
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 1000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192;",
  );
  const { user_version: version } = database.prepare("PRAGMA user_version").get() as {
    user_version: number;
  };
  if (version === 0) database.exec(`BEGIN; ${tables} COMMIT;`);
  else if (version === 1) database.exec(`BEGIN; ${fromFirst} ${fromSecond} COMMIT;`);
  else if (version === 2) database.exec(`BEGIN; ${fromSecond} COMMIT;`);
  else if (version !== 3)
    throw new Error(`its format is ${version}, which a later version of Spry has written`);
  database.exec(
    `UPDATE pending SET state = ${pendingState.waiting}, due = 0 WHERE state = ${pendingState.leased}`,
  );
}
