/** Files that a command writes for its user. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { shownPath } from "./project/shown-path.ts";
import { UserError } from "./user-error.ts";

const reasons: Record<string, string> = {
  EACCES: "you may not write there",
  EDQUOT: "the disk has no space left for you",
  EISDIR: "it is a directory",
  ENAMETOOLONG: "its name is too long",
  ENOENT: "nothing can be created there",
  ENOSPC: "the disk is full",
  ENOTDIR: "a part of its path is a file",
  EPERM: "you may not write there",
  EROFS: "the disk is read-only",
};

/** Writes files, by their paths relative to `root`, and the directories they need. Throws a UserError that names the first one that cannot be written. */
export function writeFiles(root: string, files: Readonly<Record<string, string | Buffer>>): void {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(root, name);
    try {
      makeDirectories(path.dirname(file));
      writeFileSync(file, content);
    } catch (error) {
      const { code = "", message } = error as NodeJS.ErrnoException;
      throw new UserError(
        `${shownPath(file)} cannot be written: ${reasons[code] ?? message}`,
        "choose another directory, or correct that",
        { cause: error },
      );
    }
  }
}

/**
 * Creates a directory and those above it. Node.js' own `recursive` never returns where the kernel refuses one with ENOENT, as it
 * does below /proc. `mode`: of those that are new.
 */
export function makeDirectories(directory: string, mode = 0o777): void {
  const missing: string[] = [];
  for (let at = path.resolve(directory); !existsSync(at); at = path.dirname(at)) missing.push(at);
  for (const each of missing.reverse()) {
    try {
      mkdirSync(each, { mode });
    } catch (error) {
      // Another process was faster.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}
