/** Watches of folders, one by one: a recursive watch would also follow `node_modules`. */
import { type FSWatcher, type Stats, statSync, watch } from "node:fs";

/** More folders than this are not watched. */
export const maxFolders = 2000;

interface Watched {
  watcher: FSWatcher;
  /** Differs for another folder of the same name. */
  identity: string;
}

export class FolderWatches {
  readonly #onEvent: (folder: string, name: string) => void;
  readonly #onLimit: (reason: string) => void;
  readonly #all = new Map<string, Watched>();
  /** Those that may have been replaced by another one with the same identity. */
  readonly #doubtful = new Set<string>();

  /** `onLimit`: not all can be watched, and why. Paths are absolute. */
  constructor(onEvent: (folder: string, name: string) => void, onLimit: (reason: string) => void) {
    this.#onEvent = onEvent;
    this.#onLimit = onLimit;
  }

  has(folder: string): boolean {
    return this.#all.has(folder);
  }

  /** The folder may be another one now. */
  doubt(folder: string): void {
    for (const each of this.#all.keys())
      if (each === folder || each.startsWith(`${folder}/`)) this.#doubtful.add(each);
  }

  /** Watches these folders and no others; the first ones count most. Returns whether there are new ones. */
  keep(folders: Iterable<string>): boolean {
    let hasNew = false;
    const wanted = new Set(folders);
    for (const folder of this.#all.keys()) if (!wanted.has(folder)) this.#forget(folder);
    for (const folder of wanted) {
      const identity = identityOf(folder);
      const before = this.#all.get(folder);
      if (before && identity === before.identity && !this.#doubtful.has(folder)) continue;
      this.#forget(folder);
      if (identity === undefined) continue;
      if (this.#all.size >= maxFolders) {
        this.#onLimit(`only ${maxFolders} of its ${wanted.size} folders are watched`);
        break;
      }
      hasNew = this.#watch(folder, identity) || hasNew;
    }
    this.#doubtful.clear();
    return hasNew;
  }

  close(): void {
    for (const folder of this.#all.keys()) this.#forget(folder);
  }

  #watch(folder: string, identity: string): boolean {
    try {
      const watcher = watch(folder, (_event, name) => {
        if (name !== null) this.#onEvent(folder, name);
      });
      watcher.on("error", () => this.#forget(folder));
      this.#all.set(folder, { watcher, identity });
      return true;
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      const limit = limits[code];
      if (limit !== undefined) this.#onLimit(`its folders cannot all be watched: ${limit}`);
      return false;
    }
  }

  #forget(folder: string): void {
    this.#all.get(folder)?.watcher.close();
    this.#all.delete(folder);
  }
}

/** What this machine has too little of. */
const limits: Record<string, string | undefined> = {
  ENOSPC: "the limit of inotify is reached; `sysctl fs.inotify.max_user_watches=524288` raises it",
  EMFILE: "the limit of inotify is reached; `sysctl fs.inotify.max_user_instances=512` raises it",
};

function identityOf(folder: string): string | undefined {
  let found: Stats | undefined;
  try {
    found = statSync(folder, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
  if (!found?.isDirectory()) return undefined;
  return `${found.dev} ${found.ino} ${found.birthtimeMs}`;
}
