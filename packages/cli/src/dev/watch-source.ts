import { type FSWatcher, statSync, watch } from "node:fs";
import path from "node:path";
import { IgnoreRules, keptBackAs, type SourceList } from "../project/files.ts";

/** More directories than this are not watched. */
const maxFolders = 2000;
/** Not part of the source, and yet read by `spry dev`. */
const alsoWatched = new Set([".env"]);

/**
 * Watches a source for changes of content: `onChange` gets the relative path, at once. What `.gitignore` leaves out,
 * and a file that was written without a change, are not reported. Each directory is watched by itself, because a
 * recursive watch would also follow `node_modules`.
 */
export class SourceWatch {
  readonly #root: string;
  readonly #onChange: (file: string) => void;
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #seen = new Map<string, string>();
  #rules: IgnoreRules;

  constructor(root: string, source: SourceList, onChange: (file: string) => void) {
    this.#root = root;
    this.#onChange = onChange;
    this.#rules = new IgnoreRules(root);
    for (const { path: file } of source.files) this.#seen.set(file, this.#stateOf(file));
    for (const file of alsoWatched) this.#seen.set(file, this.#stateOf(file));
    for (const folder of source.folders) this.#watch(folder);
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #watch(folder: string): void {
    if (this.#watchers.has(folder) || this.#watchers.size >= maxFolders) return;
    const watcher = watch(path.join(this.#root, folder), (_event, name) => {
      if (name) this.#look(folder === "" ? name : `${folder}/${name}`);
    });
    watcher.on("error", () => this.#forget(folder));
    this.#watchers.set(folder, watcher);
  }

  #forget(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  #look(file: string): void {
    const name = path.posix.basename(file);
    if (keptBackAs(name) && !alsoWatched.has(file)) return;
    if (/^\.(?:git|spry)ignore$/.test(name)) this.#rules = new IgnoreRules(this.#root);
    const found = statSync(path.join(this.#root, file), { throwIfNoEntry: false });
    if (!alsoWatched.has(file) && this.#rules.ignores(file, found?.isDirectory() ?? false)) return;
    if (found?.isDirectory()) return this.#watch(file);
    if (this.#watchers.has(file)) this.#forget(file);
    const state = this.#stateOf(file);
    if (state === (this.#seen.get(file) ?? "")) return;
    this.#seen.set(file, state);
    this.#onChange(file);
  }

  /** Differs when the content does; "" for a file that does not exist. */
  #stateOf(file: string): string {
    const found = statSync(path.join(this.#root, file), { throwIfNoEntry: false });
    return found ? `${found.mtimeMs} ${found.size} ${found.ino}` : "";
  }
}
