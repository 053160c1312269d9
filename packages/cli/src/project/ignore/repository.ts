/** The Git repository that a directory is in, as far as its rules for ignored files go. */
import { lstatSync, readFileSync, statSync } from "node:fs";
import path from "node:path";

export interface FoundRepository {
  /** The directory with `.git`. */
  root: string;
  /** Its `info/exclude`; a worktree's is the main one's. */
  exclude: string;
}

/** Undefined for a directory in none, or in another user's: what is above may be shared. */
export function repositoryOf(directory: string): FoundRepository | undefined {
  const owner = statSync(directory, { throwIfNoEntry: false })?.uid;
  for (let root = directory; ; root = path.dirname(root)) {
    const common = commonDirectory(path.join(root, ".git"));
    if (common !== undefined) {
      const isOwn = statSync(root, { throwIfNoEntry: false })?.uid === owner;
      return isOwn ? { root, exclude: path.join(common, "info/exclude") } : undefined;
    }
    if (path.dirname(root) === root) return undefined;
  }
}

/** Where Git keeps what all worktrees share; undefined for what is not Git's. */
function commonDirectory(place: string): string | undefined {
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (!found) return undefined;
  const [, link] = found.isFile() ? (/^gitdir: (.+)$/m.exec(textOf(place)) ?? []) : [];
  const directory = link === undefined ? place : path.resolve(path.dirname(place), link.trim());
  if (!statSync(path.join(directory, "HEAD"), { throwIfNoEntry: false })) return undefined;
  const common = textOf(path.join(directory, "commondir")).trim();
  return common === "" ? directory : path.resolve(directory, common);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
