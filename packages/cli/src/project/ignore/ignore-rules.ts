/** Which files of a directory are left out, by the rules that its author wrote for them. */
import { lstatSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { UserError } from "../../user-error.ts";
import { bytesOf, Patterns } from "./patterns.ts";
import { repositoryOf } from "./repository.ts";

const ownName = ".spryignore";
const maxBytes = 1024 * 1024;

/** Rules of a folder above the directory; `above`: the directory's path from there, in bytes. */
interface Level {
  patterns: Patterns;
  folder: string;
  above: string;
}

/**
 * The rules of `.spryignore`; where that does not exist, of each `.gitignore` from the repository's root on and of its `info/exclude`.
 * They are Git's, and also those of a directory that Git itself ignores: then what is above it does not count.
 */
export class IgnoreRules {
  readonly #root: string;
  /** A UserError where it exists and cannot be read: without it, what it leaves out would be sent. */
  readonly #own: Patterns | undefined;
  readonly #above: Level[] = [];
  readonly #below = new Map<string, Patterns | undefined>();
  /** Which file the rules are in, for messages. */
  readonly source: string;

  constructor(root: string) {
    this.#root = root;
    this.#own = ownPatterns(root);
    this.source = this.#own ? ownName : ".gitignore";
    if (!this.#own) this.#above = levelsAbove(root);
  }

  /** `relative` with `/` between its parts, and in no ignored folder. */
  ignores(relative: string, isFolder: boolean): boolean {
    const file = bytesOf(relative);
    if (this.#own) return this.#own.decide(file, isFolder) === "ignored";
    for (let folder = relative; folder !== "";) {
      folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/")));
      const below = file.slice(folder === "" ? 0 : bytesOf(folder).length + 1);
      const decision = this.#of(folder)?.decide(below, isFolder);
      if (decision) return decision === "ignored";
    }
    return decideAbove(this.#above, file, isFolder);
  }

  /** Whether `.spryignore` has a line that says so: `!prod.env`. */
  asksFor(relative: string, isFolder: boolean): boolean {
    return this.#own?.decide(bytesOf(relative), isFolder) === "sent";
  }

  #of(folder: string): Patterns | undefined {
    if (!this.#below.has(folder))
      this.#below.set(folder, patternsIn(path.join(this.#root, folder, ".gitignore")));
    return this.#below.get(folder);
  }
}

function decideAbove(levels: readonly Level[], file: string, isFolder: boolean): boolean {
  for (const { patterns, above } of levels) {
    const decision = patterns.decide(above + file, isFolder);
    if (decision) return decision === "ignored";
  }
  return false;
}

/** The nearest first, `info/exclude` last. */
function levelsAbove(root: string): Level[] {
  const repository = repositoryOf(root);
  if (!repository) return [];
  const levels: Level[] = [];
  const add = (patterns: Patterns | undefined, folder: string) => {
    const above = root === folder ? "" : `${below(folder, root)}/`;
    if (patterns) levels.push({ patterns, folder, above });
  };
  for (let at = root; at !== repository.root;) {
    at = path.dirname(at);
    add(patternsIn(path.join(at, ".gitignore")), at);
  }
  add(patternsIn(repository.exclude, true), repository.root);
  for (let at = root; at !== repository.root; at = path.dirname(at)) {
    const decision = levels
      .filter(({ folder }) => at.startsWith(folder === path.sep ? folder : folder + path.sep))
      .map(({ patterns, folder }) => patterns.decide(below(folder, at), true))
      .find((each) => each !== undefined);
    if (decision === "ignored") return [];
  }
  return levels;
}

const below = (folder: string, file: string): string =>
  bytesOf(path.relative(folder, file).split(path.sep).join("/"));

/** Git does not follow a link to rules in the tree. */
function patternsIn(file: string, mayBeLink = false): Patterns | undefined {
  try {
    const found = mayBeLink ? statSync(file) : lstatSync(file);
    if (!found.isFile()) return undefined;
    if (found.size > maxBytes) throw tooLarge(file);
    return new Patterns(readFileSync(file));
  } catch (error) {
    if (error instanceof UserError) throw error;
    return undefined;
  }
}

function ownPatterns(root: string): Patterns | undefined {
  const file = path.join(root, ownName);
  if (!lstatSync(file, { throwIfNoEntry: false })) return undefined;
  let reason: string;
  try {
    const { size } = statSync(file);
    if (size > maxBytes) throw tooLarge(ownName);
    return new Patterns(readFileSync(file));
  } catch (error) {
    if (error instanceof UserError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    // Deleted meanwhile.
    if (!lstatSync(file, { throwIfNoEntry: false })) return undefined;
    reason = code === "ENOENT" ? "it is a symbolic link to a file that does not exist" : `${code}`;
  }
  throw new UserError(
    `${ownName} cannot be read: ${reason}`,
    "correct or delete it: without its rules, files would be sent that it leaves out",
  );
}

const tooLarge = (file: string): UserError =>
  new UserError(
    `${path.basename(file)} has more than 1 MB`,
    "rules for ignored files are read up to that size; shorten it",
  );
