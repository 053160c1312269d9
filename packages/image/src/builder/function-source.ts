import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { UserError } from "./user-error.ts";

export interface SourceFile {
  /** Relative to the source directory, with `/` between parts. */
  path: string;
  content: Buffer;
  mode: number;
}

/** Of a source: files, bytes, and folders in each other. */
export const sourceLimits = { files: 10_000, size: 100_000_000, depth: 32 };
const limits = sourceLimits;

/** Made elsewhere, or none of the image's business. */
const leftOut = new Set(["node_modules", "__pycache__", ".venv", ".git"]);

/** Whether a file or folder of this name is never part of an image. Names that begin with `..` are a ConfigMap's volume's own. */
export const isLeftOut = (name: string): boolean => name.startsWith("..") || leftOut.has(name);

/**
 * Reads a Function's files into memory, so that what is checked is what is built also when the
 * volume changes meanwhile. Links to files are followed as long as they stay inside: a ConfigMap's
 * volume is made of them (names that begin with `..` are its own).
 */
export function readSource(directory: string): SourceFile[] {
  const root = realpathSync(directory);
  const files: SourceFile[] = [];
  let size = 0;

  const visit = (folder: string, depth: number) => {
    if (depth > limits.depth)
      throw new UserError(`source: more than ${limits.depth} folders deep at ${folder}`);
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      if (isLeftOut(entry.name)) continue;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) visit(path, depth + 1);
      else if (entry.isFile() || entry.isSymbolicLink()) add(path);
    }
  };
  const add = (path: string) => {
    const real = resolveInside(root, path);
    const found = statSync(real);
    if (!found.isFile())
      throw new UserError(`source: ${path} is a link to something that is not a file`);
    size += found.size;
    if (size > limits.size) throw new UserError(`source: larger than ${limits.size / 1e6} MB`);
    if (files.length >= limits.files)
      throw new UserError(`source: more than ${limits.files} files`);
    files.push({ path, content: readFileSync(real), mode: found.mode });
  };

  visit("", 0);
  if (files.length === 0) throw new UserError("source: no files");
  return files;
}

function resolveInside(root: string, path: string): string {
  let real: string;
  try {
    real = realpathSync(join(root, path));
  } catch {
    throw new UserError(`source: ${path} is a link whose target does not exist`);
  }
  if (real.startsWith(root + sep)) return real;
  throw new UserError(`source: ${path} is a link that leaves the source`);
}
