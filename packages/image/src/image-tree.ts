import { randomBytes } from "node:crypto";
import {
  chmodSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";

const linkHopLimit = 40;
const depthLimit = 256;

/**
 * A directory that stands for an image's root. Paths are resolved in it as if it were `/`: every
 * symbolic link on the way is followed inside it, and none leads out.
 */
export class ImageTree {
  readonly root: string;
  /** Image directory → where it really is below the root. Dropped whenever a name changes its meaning. */
  readonly #directories = new Map<string, string>();

  readonly #onDirectory: () => void;
  /** Where directories are that were removed; next to the root. */
  readonly #trash: string;
  #removed = 0;

  /** `onDirectory` is called for each directory that no archive names, but a path goes through. */
  constructor(root: string, onDirectory: () => void = () => {}) {
    this.root = root;
    this.#onDirectory = onDirectory;
    this.#trash = `${root}.removed-${randomBytes(4).toString("hex")}`;
  }

  /** Where the last part of an image path is on disk; missing directories above it are created. */
  locate(path: string): { parent: string; name: string; file: string } {
    const parts = partsOf(path);
    const name = parts.pop();
    if (name === undefined) return { parent: "", name: "", file: this.root };
    const parent = this.#directory(parts);
    return { parent, name, file: this.fileAt(parent, name) };
  }

  /** A path on disk; `parent` is one that `locate` returned. */
  fileAt(parent: string, name: string): string {
    return parent === "" ? join(this.root, name) : join(this.root, parent, name);
  }

  /** Removes whatever is there. */
  remove(file: string): void {
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (!found) return;
    if (!found.isFile()) this.#directories.clear();
    if (!found.isDirectory()) return rmSync(file, { force: true });
    // It may hold a million files, which are removed while others go on.
    if (this.#removed === 0) mkdirSync(this.#trash, { mode: 0o700 });
    renameSync(file, join(this.#trash, String(this.#removed++)));
  }

  /** Removes all that is in a directory, except for what is to stay; `parent` is one that `locate` returned. */
  empty(parent: string, stays: (name: string) => boolean): void {
    const dir = join(this.root, parent);
    const { mode, uid, gid } = lstatSync(dir);
    this.remove(dir);
    const removed = join(this.#trash, String(this.#removed - 1));
    mkdirSync(dir, { mode: mode & 0o7777 });
    chmodSync(dir, mode & 0o7777);
    const own = lstatSync(dir);
    if (own.uid !== uid || own.gid !== gid) lchownSync(dir, uid, gid);
    for (const name of readdirSync(removed))
      if (stays(name)) renameSync(join(removed, name), join(dir, name));
  }

  /** Frees the room of what has been removed. */
  async close(): Promise<void> {
    if (this.#removed === 0) return;
    const all = { recursive: true, force: true };
    // A path that was as long as a path can be is longer now, which only the other one removes.
    await rm(this.#trash, all).catch(() => rmSync(this.#trash, all));
  }

  /**
   * A link's target as a relative path that stays in the tree, also where the tree is not the root of
   * the process that follows it: `/a` becomes `../a`, and `..` stops at the root.
   */
  confine(target: string, parent: string): string {
    const from = parent === "" ? [] : parent.split("/");
    const to: string[] = target.startsWith("/") ? [] : [...from];
    for (const part of target.split("/")) {
      if (part === "..") to.pop();
      else if (part !== "" && part !== ".") to.push(part);
    }
    let common = 0;
    while (common < from.length && common < to.length && from[common] === to[common]) common++;
    const up = from.slice(common).map(() => "..");
    return [...up, ...to.slice(common)].join("/") || ".";
  }

  #directory(parts: string[]): string {
    const key = parts.join("/");
    const known = this.#directories.get(key);
    if (known !== undefined) return known;
    const found = this.#walk(parts);
    this.#directories.set(key, found);
    return found;
  }

  #walk(parts: string[]): string {
    const rest = [...parts];
    let at = "";
    for (let hops = 0; ;) {
      const part = rest.shift();
      if (part === undefined) return at;
      if (part === "" || part === ".") continue;
      if (part === "..") {
        at = at.slice(0, Math.max(0, at.lastIndexOf("/")));
        continue;
      }
      const next = at === "" ? part : `${at}/${part}`;
      const file = join(this.root, next);
      const found = lstatSync(file, { throwIfNoEntry: false });
      if (found?.isSymbolicLink()) {
        if (++hops > linkHopLimit)
          throw new Error(`too many links on the way to ${parts.join("/")}`);
        const target = readlinkSync(file);
        if (target.startsWith("/")) at = "";
        rest.unshift(...target.split("/"));
        continue;
      }
      if (!found) {
        this.#onDirectory();
        mkdirSync(file, { mode: 0o755 });
      } else if (!found.isDirectory()) throw new Error(`${next} is not a directory`);
      at = next;
    }
  }
}

/** A path of an archive or configuration, relative to the image's root. */
function partsOf(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw new Error("the path leaves the image");
  if (path.includes("\0")) throw new Error("the path has a zero byte");
  if (path.length > 4096 || parts.length > depthLimit) throw new Error("the path is too long");
  return parts;
}
