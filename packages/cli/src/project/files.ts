/** The files of a Function's directory that are its source: what `deploy` sends and `dev` watches. */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from "node:fs";
import path from "node:path";
import { followLink, type SourceEntryKind } from "@spry/function";
import ignore, { type Ignore } from "ignore";
import { UserError } from "../user-error.ts";

/** What a source may have at most. */
export const sourceLimits = { files: 10_000, bytes: 100_000_000, depth: 32 };

/** Never part of a source: made elsewhere, or secret. `secret`: worth a line to the user. */
const never: { name: RegExp; secret?: boolean }[] = [
  { name: /^(?:node_modules|\.git|\.venv|venv|__pycache__|\.spry|\.DS_Store)$/ },
  { name: /^\.env(?:\..*)?$/, secret: true },
  { name: /\.(?:pem|key|p12|pfx|jks|keystore)$/i, secret: true },
  { name: /^id_(?:rsa|dsa|ecdsa|ed25519)$/, secret: true },
  { name: /^(?:\.kube|\.aws|\.ssh|\.netrc|kubeconfig)$/, secret: true },
];
/** Examples of an environment are there to be shown. */
const harmless = /^\.env\.(?:example|sample|template)$/;

/** A file or link of the source; `path` is relative, with `/`. `size` in bytes. */
export interface SourceEntry {
  path: string;
  /** Where its content is: inside of the directory, also for a link to a file. */
  file: string;
  size: number;
  /** May be run as a program. */
  isExecutable: boolean;
  /** Of a link: its text, and what it leads to, relative to the directory. */
  link?: { text: string; end: string; isFolder: boolean };
}

export interface SourceList {
  /** In the order of their paths. */
  files: SourceEntry[];
  /** Directories that were looked into, relative; "" is the first. */
  folders: string[];
  /** Secrets by their names, which stay here. Relative paths. */
  keptBack: string[];
}

/** Which paths a directory's `.spryignore`, or else its `.gitignore`, leaves out. The rules are Git's (gitignore(5)). */
export class IgnoreRules {
  readonly #root: string;
  readonly #below = new Map<string, Ignore | undefined>();
  /** Folder → whether it, or one above it, has rules. */
  readonly #hasRules = new Map<string, boolean>();

  constructor(root: string) {
    this.#root = root;
  }

  /** `relative` with `/` between its parts; each folder above it is asked, the nearest one last. */
  ignores(relative: string, isFolder: boolean): boolean {
    if (!this.#applyTo(relative)) return false;
    const parts = relative.split("/");
    let result = false;
    for (let depth = 0; depth < parts.length; depth++) {
      const rules = this.#of(parts.slice(0, depth).join("/"));
      const answer = rules?.test(`${parts.slice(depth).join("/")}${isFolder ? "/" : ""}`);
      if (answer?.ignored) result = true;
      else if (answer?.unignored) result = false;
    }
    return result;
  }

  /** Most directories have no rules at all, or only in a few places. */
  #applyTo(relative: string): boolean {
    const folder = relative.slice(0, Math.max(0, relative.lastIndexOf("/")));
    const known = this.#hasRules.get(folder);
    if (known !== undefined) return known;
    const found = this.#of(folder) !== undefined || (folder !== "" && this.#applyTo(folder));
    this.#hasRules.set(folder, found);
    return found;
  }

  #of(folder: string): Ignore | undefined {
    if (this.#below.has(folder)) return this.#below.get(folder);
    const names = folder === "" && this.#has(".spryignore") ? [".spryignore"] : [".gitignore"];
    const [file] = names.map((name) => path.join(this.#root, folder, name)).filter(isSmallFile);
    const rules = file === undefined ? undefined : ignore().add(readFileSync(file, "utf8"));
    this.#below.set(folder, rules);
    return rules;
  }

  #has(name: string): boolean {
    return existsSync(path.join(this.#root, name));
  }
}

function isSmallFile(file: string): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false });
  return found !== undefined && found.isFile() && found.size <= 1024 * 1024;
}

/** Whether a name is never part of a source, and whether because it may be a secret. */
export function keptBackAs(name: string): "secret" | "other" | undefined {
  if (harmless.test(name)) return undefined;
  const rule = never.find((each) => each.name.test(name));
  if (!rule) return undefined;
  return rule.secret ? "secret" : "other";
}

/**
 * Lists the source of a directory. Links are listed as links, and not looked into; one that cannot be carried (`followLink`), and
 * more than `sourceLimits`, is a UserError that names the files.
 */
export function listSource(directory: string, limits = sourceLimits): SourceList {
  const root = realpathSync(directory);
  const rules = new IgnoreRules(root);
  const list: SourceList = { files: [], folders: [], keptBack: [] };
  const links = new Map<string, string>();
  let bytes = 0;

  const visit = (folder: string, depth: number) => {
    if (depth > limits.depth)
      throw new UserError(`${folder} is more than ${limits.depth} folders deep`);
    list.folders.push(folder);
    const entries = readdirSync(path.join(root, folder), { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const relative = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const kept = keptBackAs(entry.name);
      if (kept === "secret") list.keptBack.push(relative);
      if (kept || rules.ignores(relative, entry.isDirectory())) continue;
      if (entry.isDirectory()) visit(relative, depth + 1);
      else if (entry.isFile()) add(relative, path.join(root, relative));
      else if (entry.isSymbolicLink()) links.set(relative, readlinkSync(path.join(root, relative)));
    }
  };
  const add = (relative: string, file: string) => {
    const { size, mode } = lstatSync(file);
    bytes += size;
    list.files.push({ path: relative, file, size, isExecutable: (mode & 0o100) !== 0 });
    // Counted on a little, so that the largest are among those that are named.
    if (list.files.length > limits.files * 2) throw tooMuch(list.files, bytes, limits);
  };

  visit("", 0);
  list.files.push(...linksOf(root, list, links));
  if (list.files.length > limits.files || bytes > limits.bytes)
    throw tooMuch(list.files, bytes, limits);
  list.files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return list;
}

function linksOf(
  root: string,
  { files, folders }: SourceList,
  links: ReadonlyMap<string, string>,
): SourceEntry[] {
  const kinds = new Map<string, SourceEntryKind>([
    ...files.map((file) => [file.path, "file"] as const),
    ...folders.map((folder) => [folder, "folder"] as const),
    ...[...links].map(([name, link]) => [name, { link }] as const),
  ]);
  const entryAt = (name: string) =>
    kinds.get(name) ?? (path.posix.basename(name) === "node_modules" ? "installed" : undefined);
  return [...links].map(([name, text]) => {
    const end = followLink(name, entryAt);
    const leave = "list the link in .spryignore";
    if (end.kind === "absolute" || end.kind === "outside") {
      const isInside = path.resolve(root, path.dirname(name), text).startsWith(root + path.sep);
      throw isInside
        ? new UserError(
            `${name} is a symbolic link with an absolute path, ${text}`,
            `make it relative, or ${leave}`,
          )
        : new UserError(
            `${name} is a symbolic link out of the directory, to ${text}`,
            `copy the file into the directory, or ${leave}`,
          );
    }
    if (end.kind === "circle")
      throw new UserError(
        `${name} is a symbolic link that leads in a circle, to ${text}`,
        `delete it, or ${leave}`,
      );
    if (end.kind === "missing")
      throw lstatSync(path.join(root, end.path), { throwIfNoEntry: false })
        ? new UserError(
            `${name} is a symbolic link to ${end.path}, which is not among the files that are sent`,
            `take ${end.path} out of .spryignore or .gitignore, or ${leave}`,
          )
        : new UserError(
            `${name} is a symbolic link to a file that does not exist, ${text}`,
            `delete it, or ${leave}`,
          );
    const file = path.join(root, end.path);
    const isFolder = end.kind !== "file";
    const isExecutable = !isFolder && (lstatSync(file).mode & 0o100) !== 0;
    return { path: name, file, size: 0, isExecutable, link: { text, end: end.path, isFolder } };
  });
}

/** Where links cannot be kept: for each one the file, or the files in the folder, that it leads to, under its name. */
export function copiesForLinks(files: readonly SourceEntry[]): SourceEntry[] {
  return files.flatMap(({ path: name, link }) => {
    if (!link) return [];
    const below = link.end === "" ? "" : `${link.end}/`;
    return files
      .filter((file) => !file.link && (file.path === link.end || file.path.startsWith(below)))
      .map((file) => ({ ...file, path: copyName(name, link.end, file.path) }));
  });
}

const copyName = (name: string, end: string, file: string): string =>
  end === "" ? `${name}/${file}` : `${name}${file.slice(end.length)}`;

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
