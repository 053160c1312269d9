import { readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";

/** Who may use an image that is on this machine. */
export interface PullRecord {
  /** It was had without any Pod's login. */
  everyone?: boolean;
  /** Uids of the namespaces that have shown a registry who they are, and were given it. */
  namespaces: string[];
}

const fileName = "pulled-by.json";

/** What stands next to an unpacked image; undefined for one of a version that kept no such records. */
export function readPullRecord(imageDir: string): PullRecord | undefined {
  try {
    return JSON.parse(readFileSync(path.join(imageDir, fileName), "utf8")) as PullRecord;
  } catch {
    return undefined;
  }
}

/** A reader sees the old record or the new one. */
export function writePullRecord(imageDir: string, record: PullRecord): void {
  const file = path.join(imageDir, fileName);
  writeFileSync(`${file}.new`, JSON.stringify(record));
  renameSync(`${file}.new`, file);
}

export function mayUse(record: PullRecord | undefined, namespaceUid: string): boolean {
  return record?.everyone === true || record?.namespaces.includes(namespaceUid) === true;
}

/** With one more user; the same object when that is known already. `undefined` is everyone. */
export function withUser(
  record: PullRecord | undefined,
  namespaceUid: string | undefined,
): PullRecord {
  const before = record ?? { namespaces: [] };
  if (namespaceUid === undefined) return before.everyone ? before : { ...before, everyone: true };
  if (before.namespaces.includes(namespaceUid)) return before;
  return { ...before, namespaces: [...before.namespaces, namespaceUid] };
}
