/** The files of a Function's directory that are its source: what `deploy` sends and `dev` watches. */
import {
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  type Dirent,
  type Stats,
} from "node:fs";
import path from "node:path";
import { UserError } from "../user-error.ts";
import { IgnoreRules } from "./ignore/ignore-rules.ts";
import { keptBackAs, secretInside, virtualEnvironmentMark } from "./never-sent.ts";
import { followLinks } from "./source-links.ts";

/** What a source may have at most. */
export const sourceLimits = { files: 10_000, bytes: 100_000_000, depth: 32 };

/** A file or link of the source; `path` is relative, with `/`. `size` in bytes. */
export interface SourceEntry {
  path: string;
  /** Where its content is: inside of the directory, also for a link to a file. */
  file: string;
  size: number;
  /** May be run as a program. */
  isExecutable: boolean;
  /** Differs when the content does. */
  version: string;
  /** Of a link: its text, and what it leads to, relative to the directory. */
  link?: { text: string; end: string; isFolder: boolean };
}

export interface SourceList {
  /** In the order of their paths. */
  files: SourceEntry[];
  /** Directories that were looked into, relative; "" is the first. */
  folders: string[];
  /** Secrets by their names or first lines, which stay here. Relative paths. */
  keptBack: string[];
  /** A sentence where a rule leaves out the handler, which is sent all the same. */
  remark?: string | undefined;
  /** Why it cannot be sent as it is. */
  problem?: UserError | undefined;
}

export interface ListOptions {
  /** The file that is the handler: with its folder it is part of the source, whatever rules say. */
  handler?: string | undefined;
  limits?: typeof sourceLimits;
}

/**
 * Lists the source of a directory, to be sent. Links are listed as links, and not looked into; one that cannot be carried
 * (`followLink`), what cannot be read, and more than `sourceLimits`, is a UserError that names the files.
 */
export function listSource(directory: string, options: ListOptions = {}): SourceList {
  const list = new Lister(directory, options, true).list();
  if (list.problem) throw list.problem;
  return list;
}

/**
 * As `listSource`, of a directory that is not sent: with `problem` in place of an error, and without a look into files. What vanishes
 * meanwhile, or cannot be read, is left out.
 */
export function listPresent(directory: string, options: ListOptions = {}): SourceList {
  try {
    return new Lister(directory, options, false).list();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { files: [], folders: [], keptBack: [], problem: error };
  }
}

/** The version of a file, as in `SourceEntry`. */
export const versionOf = ({ mtimeMs, size, ino }: Stats): string => `${mtimeMs} ${size} ${ino}`;

/** Whether rules decide, or everything is sent, or only what is on the way to the handler. */
type Mode = "rules" | "all" | "way";

class Lister {
  readonly #root: string;
  readonly #rules: IgnoreRules;
  readonly #limits: typeof sourceLimits;
  readonly #isSent: boolean;
  /** A handler that rules leave out, and its folder. */
  #sentHandler: string | undefined;
  #sentFolder: string | undefined;
  readonly #list: SourceList = { files: [], folders: [], keptBack: [] };
  readonly #links = new Map<string, string>();
  #bytes = 0;
  #isFull = false;

  constructor(directory: string, { handler, limits = sourceLimits }: ListOptions, isSent: boolean) {
    this.#root = realPath(directory);
    this.#rules = new IgnoreRules(this.#root);
    this.#limits = limits;
    this.#isSent = isSent;
    if (handler !== undefined) this.#sendHandler(handler);
  }

  list(): SourceList {
    const list = this.#list;
    const { files } = list;
    this.#visit("", 0, "rules");
    for (const result of followLinks(this.#root, list, this.#links)) {
      if ("entry" in result) files.push(result.entry);
      // Rules may be a repository's: they are read here, and not needed elsewhere.
      else if (!/(?:^|\/)\.(?:spry|git)ignore$/.test(result.name)) this.#refuse(result.problem);
    }
    const { files: most, bytes } = this.#limits;
    if (files.length > most || this.#bytes > bytes)
      this.#refuse(tooMuch(files, this.#bytes, this.#limits));
    files.sort((a, b) => (a.path < b.path ? -1 : 1));
    return list;
  }

  #visit(folder: string, depth: number, mode: Mode): void {
    if (depth > this.#limits.depth)
      return this.#refuse(
        new UserError(
          `${folder} is more than ${this.#limits.depth} folders deep`,
          "move what is in it, or list it in .spryignore",
        ),
      );
    const entries = this.#entriesOf(folder);
    if (!entries) return;
    if (folder !== "" && entries.some(({ name }) => name === virtualEnvironmentMark)) return;
    this.#list.folders.push(folder);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      // Counted on a little, so that the largest are among those that are named.
      this.#isFull ||= this.#list.files.length > this.#limits.files * 2;
      if (this.#isFull) return;
      this.#take(folder === "" ? entry.name : `${folder}/${entry.name}`, entry, depth, mode);
    }
  }

  #take(relative: string, entry: Dirent, depth: number, mode: Mode): void {
    const isFolder = entry.isDirectory();
    if (this.#isKeptBack(relative, entry)) return;
    const isIgnored = mode !== "all" && (mode === "way" || this.#rules.ignores(relative, isFolder));
    if (isIgnored && !this.#leadsToHandler(relative)) return;
    if (isFolder) {
      const isAll = mode === "all" || this.#sentFolder === relative;
      this.#visit(relative, depth + 1, isAll ? "all" : isIgnored ? "way" : "rules");
    } else if (entry.isFile()) this.#add(relative);
    else if (entry.isSymbolicLink()) this.#addLink(relative);
  }

  #isKeptBack(relative: string, entry: Dirent): boolean {
    const kept = keptBackAs(relative);
    if (!kept || kept === "always") return kept !== undefined;
    if (this.#rules.asksFor(relative, entry.isDirectory())) return false;
    if (kept === "secret") {
      if (entry.isFile() && /\.pem$/i.test(relative) && this.#isSecret(relative) === false)
        return false;
      this.#list.keptBack.push(relative);
    }
    return true;
  }

  /** By its content, as `secretInside`. */
  #isSecret(relative: string): boolean | undefined {
    const file = path.join(this.#root, relative);
    try {
      return secretInside(file, lstatSync(file).size);
    } catch {
      return undefined;
    }
  }

  /** The handler that rules leave out, or a folder on the way to it. */
  #leadsToHandler(relative: string): boolean {
    const handler = this.#sentHandler;
    return handler !== undefined && (handler === relative || handler.startsWith(`${relative}/`));
  }

  /** Sends the handler with its folder although rules leave it out. */
  #sendHandler(handler: string): void {
    const parts = handler.split("/");
    const isIgnored = parts.some((_part, at) =>
      this.#rules.ignores(parts.slice(0, at + 1).join("/"), at < parts.length - 1),
    );
    if (!isIgnored || !lstatSync(path.join(this.#root, handler), { throwIfNoEntry: false })) return;
    this.#sentHandler = handler;
    this.#sentFolder = path.posix.dirname(handler);
    const sent = this.#sentFolder === "." ? handler : `${this.#sentFolder}/`;
    this.#list.remark = `${sent} is sent although ${this.#rules.source} leaves it out: the handler is ${handler}`;
  }

  #entriesOf(folder: string): Dirent[] | undefined {
    try {
      return readdirSync(path.join(this.#root, folder), { withFileTypes: true });
    } catch (error) {
      this.#refuseUnreadable(folder === "" ? "the directory" : folder, error);
      return undefined;
    }
  }

  #add(relative: string): void {
    const file = path.join(this.#root, relative);
    try {
      const found = lstatSync(file);
      const { size, mode } = found;
      if (this.#isSent && secretInside(file, size) && !this.#rules.asksFor(relative, false)) {
        this.#list.keptBack.push(relative);
        return;
      }
      this.#bytes += size;
      const isExecutable = (mode & 0o100) !== 0;
      this.#list.files.push({
        path: relative,
        file,
        size,
        isExecutable,
        version: versionOf(found),
      });
    } catch (error) {
      this.#refuseUnreadable(relative, error);
    }
  }

  #addLink(relative: string): void {
    try {
      this.#links.set(relative, readlinkSync(path.join(this.#root, relative)));
    } catch (error) {
      this.#refuseUnreadable(relative, error);
    }
  }

  /** A file that has vanished is not part of the source any more. */
  #refuseUnreadable(name: string, error: unknown): void {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const isForeign = name.includes("\uFFFD");
    if ((code === "ENOENT" || code === "ENOTDIR" || code === "EINVAL") && !isForeign) return;
    const reason = isForeign ? "its name is not UTF-8" : readable(code);
    const wayOut = isForeign ? "rename it" : "change its permissions, or list it in .spryignore";
    this.#refuse(new UserError(`${name} cannot be read: ${reason}`, wayOut));
  }

  /** The first one counts. */
  #refuse(problem: UserError): void {
    this.#list.problem ??= problem;
  }
}

const readable = (code: string): string =>
  code === "EACCES" || code === "EPERM" ? `permission denied (${code})` : code;

function realPath(directory: string): string {
  try {
    return realpathSync(directory);
  } catch {
    throw new UserError(`${directory} does not exist`, "it has been deleted or renamed");
  }
}

function tooMuch(files: SourceEntry[], bytes: number, limits: typeof sourceLimits): UserError {
  const largest = files.toSorted((a, b) => b.size - a.size).slice(0, 3);
  const named = largest.map(({ path: name, size }) => `${name} (${megabytes(size)})`).join(", ");
  return new UserError(
    `the directory has ${files.length} files and ${megabytes(bytes)}; ` +
      `a source has at most ${limits.files} files and ${megabytes(limits.bytes)}. The largest: ${named}`,
    "list what the Function does not need in .spryignore",
  );
}

export const megabytes = (bytes: number): string =>
  bytes < 100_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
