/**
 * Who uses a data directory: at most one platform. The lock is one of the operating system, on a file that SQLite has open, and ends with
 * its process, however that ends. `lock` next to it says which process has it, for others to read: what is left in it decides nothing.
 */
import { rmdirSync, rmSync } from "node:fs";
import path from "node:path";
import { type DatabaseSync } from "node:sqlite";
import { identify, lifeOf, type ProcessIdentity, readIdentity } from "@spry/kube";
import { UserError } from "../user-error.ts";
import { readJson, writeAtomically } from "./state-files.ts";

export const ownerName = "lock";
export const lockName = "lock.db";
/** Result codes of SQLite (https://www.sqlite.org/rescode.html). */
const sqlite = { busy: 5, cannotOpen: 14, notADatabase: 26 };

const attempts = 40;
const pauseMs = 50;

/** The process that uses the directory, as far as that is known; undefined when it has ended. */
export function ownerOf(root: string): ProcessIdentity | undefined {
  const owner = readIdentity(readJson(path.join(root, ownerName)));
  return owner && lifeOf(owner) !== "dead" ? owner : undefined;
}

/** Takes the lock, or throws a UserError at once; returns what gives it back. */
export function lockDataDir(root: string): () => void {
  assertNotOwned(root);
  const file = path.join(root, lockName);
  const held = hold(root, file);
  try {
    // An earlier process may have had it between the first look and now, or the file may have been replaced under its owner.
    assertNotOwned(root);
    const owner = path.join(root, ownerName);
    removeEmptyDirectory(owner);
    writeAtomically(owner, JSON.stringify(identify(process.pid)), 0o600);
    return () => {
      rmSync(owner, { force: true });
      held.close();
    };
  } catch (error) {
    held.close();
    throw error;
  }
}

function assertNotOwned(root: string): void {
  const owner = ownerOf(root);
  if (owner) throw inUse(root, `another Spry (process ${owner.pid}) is running`);
}

const inUse = (root: string, who: string): UserError =>
  new UserError(
    `${who} with the data directory ${root}`,
    "stop it, or choose another directory with --data-dir",
  );

/** A process that was killed keeps its lock until its last thread is gone; one that has just taken it says at once who it is. */
function hold(root: string, file: string): DatabaseSync {
  removeEmptyDirectory(file);
  for (let left = attempts; ; left--) {
    const held = tryHold(file);
    if (held) return held;
    assertNotOwned(root);
    if (left <= 1) throw inUse(root, "another Spry has just begun to run");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
  }
}

/** Undefined while another has it. */
function tryHold(file: string): DatabaseSync | undefined {
  // Not loaded by commands that lock nothing.
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file);
    // Without a file of its own for the transaction: it works on a full disk, too.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database?.close();
    const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff;
    if (code === sqlite.busy) return undefined;
    if (![sqlite.cannotOpen, sqlite.notADatabase].includes(code)) throw error;
    throw new UserError(
      `${file} is damaged, or cannot be opened: ${(error as Error).message}`,
      "remove it, which loses no data",
      { cause: error },
    );
  }
}

/** Nothing of ours is a directory there. One that holds something is for the user to look at. */
function removeEmptyDirectory(file: string): void {
  try {
    rmdirSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return;
    throw new UserError(`${file} is a directory`, "remove it, which loses no data of Spry");
  }
}
