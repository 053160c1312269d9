/** Which files of a directory, and of what its code has loaded, have changed. */
import { createHash } from "node:crypto";
import { fstatSync, readFileSync, type Stats, statSync } from "node:fs";
import path from "node:path";
import { listPresent, type SourceList, versionOf } from "../project/files.ts";
import { IgnoreRules } from "../project/ignore/ignore-rules.ts";
import { keptBackAs } from "../project/never-sent.ts";
import { FolderWatches } from "./folder-watches.ts";

/** A new folder gets its files at once. */
const newMs = 10;
/** After the last event everything is compared once more: what came between a look and a watch, and events that were lost. */
const settledMs = 150;
/** Larger files are compared by time and size alone. */
const maxHashed = 1024 * 1024;
const maxLoaded = 5000;
/** Not part of the source, and yet read by `spry dev`. */
const alsoWatched = [".env"];

export interface WatchOptions {
  handler: string | undefined;
  /** Gets the relative path, at once; of a file elsewhere it begins with `../`. */
  onChange: (file: string) => void;
  report: (line: string) => void;
}

interface Seen {
  version: string;
  hash?: string | undefined;
}

/**
 * Watches a source for changes of content. What is ignored, and a file that was written without a change, are not reported; what the
 * code has loaded is, ignored or not.
 */
export class SourceWatch {
  readonly #root: string;
  readonly #options: WatchOptions;
  readonly #folders: FolderWatches;
  /** By their absolute paths, as everything here. */
  #seen = new Map<string, Seen>();
  readonly #loaded = new Set<string>();
  #rules: IgnoreRules | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  #hasReportedLimit = false;
  #isClosed = false;

  constructor(root: string, options: WatchOptions) {
    this.#root = root;
    this.#options = options;
    this.#folders = new FolderWatches(
      (folder, name) => this.#look(folder, name),
      (reason) => this.#reportLimit(reason),
    );
    this.#compare(() => {});
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#folders.close();
  }

  /** Files that the code has loaded just now; `since`: when it began to be loaded, as `Date.now()`. */
  addLoaded(files: Iterable<string>, since: number): void {
    let hasNew = false;
    for (const file of files) {
      if (this.#seen.has(file) || this.#loaded.size >= maxLoaded) continue;
      hasNew = true;
      this.#loaded.add(file);
      const found = statOf(file);
      this.#seen.set(file, { version: found ? versionOf(found) : "" });
      // Perhaps after it was loaded.
      if (found && found.mtimeMs > since) this.#options.onChange(this.#relative(file));
    }
    if (hasNew) this.#compareIn(settledMs);
  }

  /** An event of a watched folder. */
  #look(folder: string, name: string): void {
    if (this.#isClosed) return;
    const file = path.join(folder, name);
    if (this.#folders.has(file)) {
      this.#folders.doubt(file);
      return this.#compareIn(newMs);
    }
    const seen = this.#seen.get(file);
    if (seen) {
      this.#lookAt(file, seen);
      return this.#compareIn(settledMs);
    }
    if (this.#isRelevant(file)) this.#compareIn(newMs);
  }

  /** A new file or folder that is part of the source, or that loaded files are in. */
  #isRelevant(file: string): boolean {
    const below = file + path.sep;
    for (const each of this.#loaded) if (each.startsWith(below)) return true;
    const relative = this.#relative(file);
    if (relative === "") return true;
    if (/^\.\.(?:\/|$)/.test(relative)) return this.#root.startsWith(below);
    const kept = keptBackAs(relative);
    const found = statOf(file);
    const isFolder = found?.isDirectory() ?? false;
    if (kept && !this.#rules?.asksFor(relative, isFolder)) return false;
    if (found && isOwnOutput(found)) return false;
    return !this.#rules?.ignores(relative, isFolder);
  }

  #lookAt(file: string, seen: Seen): void {
    const found = statOf(file);
    const version = found ? versionOf(found) : "";
    // Two writes at nearly the same time leave the same time and size.
    const isRecent = found !== undefined && Date.now() - found.mtimeMs < 100;
    if (version === seen.version && !(isRecent && seen.hash !== undefined)) return;
    if (found && isOwnOutput(found)) return;
    const hash = found && found.size <= maxHashed ? hashOf(file) : undefined;
    this.#seen.set(file, { version, hash });
    if (hash !== undefined && hash === seen.hash) return;
    this.#options.onChange(this.#relative(file));
  }

  #compareIn(ms: number): void {
    // The earlier one of what is planned and what is asked for; a later one is put off.
    if (this.#timer && this.#timerMs < ms) return;
    clearTimeout(this.#timer);
    this.#timerMs = ms;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#timerMs = Number.POSITIVE_INFINITY;
      this.#compare((file) => this.#options.onChange(this.#relative(file)));
      if (ms === newMs) this.#compareIn(settledMs);
    }, ms);
  }

  /** Looks at everything, and watches the folders that are there now. */
  #compare(onChange: (file: string) => void): void {
    if (this.#isClosed) return;
    let list = this.#list();
    // What appears between a look and a watch.
    for (let tries = 0; tries < 5 && this.#folders.keep(this.#foldersOf(list)); tries++)
      list = this.#list();
    const before = this.#seen;
    const now = new Map<string, Seen>();
    for (const { path: file, link, version } of list.files)
      if (!link) now.set(path.join(this.#root, file), { version });
    const others = alsoWatched.map((name) => path.join(this.#root, name));
    for (const file of [...others, ...this.#loaded]) {
      const found = now.has(file) ? undefined : statOf(file);
      if (!now.has(file)) now.set(file, { version: found ? versionOf(found) : "" });
    }
    this.#seen = now;
    for (const [file, { version }] of now) {
      const seen = before.get(file);
      if (seen && seen.version === version) now.set(file, seen);
      else if (seen || version !== "") this.#changed(file, seen, onChange);
    }
    for (const file of before.keys()) if (!now.has(file)) onChange(file);
  }

  #changed(file: string, seen: Seen | undefined, onChange: (file: string) => void): void {
    const found = statOf(file);
    if (found && isOwnOutput(found)) return;
    const hash = found && found.size <= maxHashed && seen ? hashOf(file) : undefined;
    this.#seen.set(file, { version: found ? versionOf(found) : "", hash });
    if (hash === undefined || hash !== seen?.hash) onChange(file);
  }

  #list(): SourceList {
    try {
      this.#rules = new IgnoreRules(this.#root);
    } catch {
      // What is wrong with it is said when the code is prepared.
      this.#rules = undefined;
    }
    return listPresent(this.#root, { handler: this.#options.handler });
  }

  /** The directory's first, then where it is itself, then those of loaded files, installed ones last. */
  #foldersOf({ folders }: SourceList): Set<string> {
    const own = folders.map((folder) => path.join(this.#root, folder));
    const wanted = new Set([this.#root, ...own, path.dirname(this.#root)]);
    const isInstalled = (file: string) =>
      file.includes("/node_modules/") || file.includes("/site-packages/");
    const sorted = [...this.#loaded].sort(
      (a, b) => Number(isInstalled(a)) - Number(isInstalled(b)),
    );
    for (const file of sorted) for (const folder of this.#foldersAbove(file)) wanted.add(folder);
    return wanted;
  }

  /** Those in the directory, and of another file the two that it is in. */
  #foldersAbove(file: string): string[] {
    const folders = [path.dirname(file)];
    const isInside = file.startsWith(this.#root + path.sep);
    if (!isInside) return [...folders, path.dirname(path.dirname(file))];
    for (let at = path.dirname(file); at !== this.#root; at = path.dirname(at)) folders.push(at);
    return folders;
  }

  #relative(file: string): string {
    return path.relative(this.#root, file).split(path.sep).join("/");
  }

  #reportLimit(reason: string): void {
    if (this.#hasReportedLimit) return;
    this.#hasReportedLimit = true;
    this.#options.report(`${reason}; press r to load changes in others`);
  }
}

function statOf(file: string): Stats | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function hashOf(file: string): string | undefined {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("base64");
  } catch {
    return undefined;
  }
}

/** What this command itself writes: `spry dev > dev.log`. */
function isOwnOutput({ dev, ino }: Stats): boolean {
  return [1, 2].some((descriptor) => {
    try {
      const found = fstatSync(descriptor);
      return found.isFile() && found.dev === dev && found.ino === ino;
    } catch {
      return false;
    }
  });
}
