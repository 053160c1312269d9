import { type Reply, troubleId } from "./protocol.ts";

/** Without `@spry/kube`: the thread loads as little as it can. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Something to be logged. */
export const trouble = (error: string): Reply => ({ id: troubleId, error, kind: "other" });

/** Of SQLite itself (https://nodejs.org/api/errors.html): the disk, or the file. */
export function isOfDatabase(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR";
}

export function isFull(error: unknown): boolean {
  return /SQLITE_FULL|disk is full|ENOSPC/i.test(messageOf(error));
}
