import {
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import { isAbsolute, join, posix, relative, sep } from "node:path";
import { followLink, type SourceEntryKind } from "@spry/function";
import { UserError } from "./user-error.ts";

export interface SourceFile {
  /** Relative to the source directory, with `/` between parts. */
  path: string;
  /** Of a link to a file, that of the file; of a link to a folder, the link's text. */
  content: Buffer;
  mode: number;
  /** Where a link leads, as it is in the source; absent for a file. */
  link?: string;
}

/** Of a source: files, bytes, and folders in each other. */
export const sourceLimits = { files: 10_000, size: 100_000_000, depth: 32 };
const limits = sourceLimits;

/** Made elsewhere, or none of the image's business. */
const leftOut = new Set(["node_modules", "__pycache__", ".venv", ".git"]);
/** Of a ConfigMap's volume: the folder with its files, by its date, and the link to it. */
const ofVolume = /^\.\.(?:data(?:_tmp)?|\d{4}(?:_.*)?)$/;

/** Whether a file or folder of this name is never part of an image. */
export const isLeftOut = (name: string): boolean => leftOut.has(name) || ofVolume.test(name);

export interface ReadOptions {
  /** Absolute links inside are kept, as relative ones: a program has made them. Default: they are refused. */
  takesAbsoluteLinks?: boolean;
  /** Gets a line for what is left out because of its name. */
  report?: ((line: string) => void) | undefined;
}

/**
 * Reads a Function's files into memory, so that what is checked is what is built also when the
 * volume changes meanwhile. Links are kept (`followLink` says which), and nothing is read through one, except in a ConfigMap's
 * volume, which is made of them. Throws a `UserError` for a link that cannot be kept, and for more than `sourceLimits`.
 */
export function readSource(directory: string, options: ReadOptions = {}): SourceFile[] {
  const { takesAbsoluteLinks = false, report = () => {} } = options;
  const root = realpathSync(directory);
  const files = new Map<string, SourceFile>();
  const folders = new Set<string>();
  const links = new Map<string, string>();
  const unread: string[] = [];
  let size = 0;

  const visit = (folder: string, depth: number) => {
    if (depth > limits.depth)
      throw new UserError(`source: more than ${limits.depth} folders deep at ${folder}`);
    folders.add(folder);
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (isLeftOut(entry.name)) {
        if (!ofVolume.test(entry.name)) unread.push(path);
      } else if (entry.isDirectory()) visit(path, depth + 1);
      else if (entry.isFile()) add(path, join(root, path));
      else if (entry.isSymbolicLink()) addLink(path);
    }
  };
  const count = (bytes: number) => {
    size += bytes;
    if (size > limits.size) throw new UserError(`source: larger than ${limits.size / 1e6} MB`);
    if (files.size + links.size >= limits.files)
      throw new UserError(`source: more than ${limits.files} files`);
  };
  const add = (path: string, file: string) => {
    const found = statSync(file);
    count(found.size);
    files.set(path, { path, content: readFileSync(file), mode: found.mode });
  };
  const addLink = (path: string) => {
    const target = readlinkSync(join(root, path));
    if (ofVolume.test(target.split("/")[0] ?? "")) return add(path, inVolume(root, path));
    count(0);
    const isInside = isAbsolute(target) && target.startsWith(root + sep);
    const kept =
      takesAbsoluteLinks && isInside ? relativeLink(path, relative(root, target)) : target;
    links.set(path, kept);
  };

  visit("", 0);
  const all = [...files.values(), ...keptLinks(files, folders, links)];
  if (all.length === 0) throw new UserError("source: no files");
  reportLeftOut(unread, report);
  return all;
}

function keptLinks(
  files: ReadonlyMap<string, SourceFile>,
  folders: ReadonlySet<string>,
  links: ReadonlyMap<string, string>,
): SourceFile[] {
  const entryAt = (path: string): SourceEntryKind | undefined => {
    const link = links.get(path);
    if (link !== undefined) return { link };
    if (files.has(path)) return "file";
    if (folders.has(path)) return "folder";
    return posix.basename(path) === "node_modules" ? "installed" : undefined;
  };
  return [...links].map(([path, link]) => {
    const end = followLink(path, entryAt);
    const to = `${path} is a link`;
    const rule = "links must be relative, and lead to a file or folder of the source";
    if (end.kind === "absolute" || end.kind === "outside")
      throw new UserError(`source: ${to} that leaves the source, to ${link}: ${rule}`);
    if (end.kind === "circle")
      throw new UserError(`source: ${to} to ${link}, which leads in a circle: ${rule}`);
    if (end.kind === "missing")
      throw new UserError(`source: ${to} whose target does not exist, ${link}: ${rule}`);
    const target = end.kind === "file" ? files.get(end.path) : undefined;
    const { content, mode } = target ?? { content: Buffer.from(link), mode: 0o644 };
    return { path, content, mode, link };
  });
}

const relativeLink = (path: string, target: string): string =>
  posix.relative(posix.dirname(path), target.split(sep).join("/")) || ".";

/** The volume's files are behind links, and may be replaced meanwhile. */
function inVolume(root: string, path: string): string {
  let real: string;
  try {
    real = realpathSync(join(root, path));
  } catch {
    throw new UserError(`source: ${path} is a link whose target does not exist`);
  }
  if (!real.startsWith(root + sep) || !lstatSync(real).isFile())
    throw new UserError(`source: ${path} is a link that leaves the source`);
  return real;
}

const shownNames = 5;

/** Someone may have committed them. */
function reportLeftOut(paths: readonly string[], report: (line: string) => void): void {
  if (paths.length === 0) return;
  const more = paths.length > shownNames ? ` and ${paths.length - shownNames} more` : "";
  const shown = paths.slice(0, shownNames).map((path) => JSON.stringify(path));
  report(`left out of the source, because of their names: ${shown.join(", ")}${more}`);
}
