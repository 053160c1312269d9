import { lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join, posix, relative, resolve, sep } from "node:path";
import { type LayerFile } from "../layer.ts";
import { UserError } from "./user-error.ts";

const limits = { entries: 200_000, size: 2 * 1024 ** 3, depth: 64 };

/** Where a file is in the image; null for what is left out, undefined for what is not ours. */
export type PlaceOf = (file: string) => string | null | undefined;

/** The files of an installed tree as they go into a layer below `prefix`; links may lead to wherever `placeOf` knows. */
export function readModules(
  directory: string,
  prefix: string,
  placeOf: PlaceOf = placesBelow([[directory, prefix]]),
): { files: LayerFile[]; size: number } {
  const files: LayerFile[] = [];
  let size = 0;

  const visit = (folder: string, depth: number) => {
    if (depth > limits.depth)
      throw new UserError(`dependencies: more than ${limits.depth} folders deep`);
    for (const entry of readdirSync(join(directory, folder), { withFileTypes: true })) {
      const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (name === ".package-lock.json" || isLeftover(directory, folder, entry.name)) continue;
      const file = join(directory, name);
      const path = `${prefix}/${name}`;
      if (entry.isDirectory()) visit(name, depth + 1);
      else if (entry.isSymbolicLink()) {
        const link = linkInside(directory, name, path, placeOf);
        if (link !== undefined) files.push({ path, link });
      } else if (entry.isFile()) {
        const found = lstatSync(file);
        size += found.size;
        files.push({ path, file, mode: found.mode });
      }
      if (files.length > limits.entries)
        throw new UserError(`dependencies: more than ${limits.entries} files`);
      if (size > limits.size)
        throw new UserError(`dependencies: larger than ${limits.size / 1024 ** 3} GiB`);
    }
  };

  visit("", 0);
  return { files, size };
}

/**
 * Whether there is such a directory below `root`, and no link leads to it: scripts of packages may have put one
 * in its place, to something that only the builder may read. Throws a `UserError` then.
 */
export function isDirectoryBelow(root: string, directory: string): boolean {
  let real: string;
  try {
    real = realpathSync(directory);
  } catch {
    return false;
  }
  const expected = join(realpathSync(root), relative(root, directory));
  if (real === expected && lstatSync(real).isDirectory()) return true;
  throw new UserError(
    `dependencies: ${relative(root, directory)} is no longer a directory: a script has replaced it`,
  );
}

/** Left in a package by node-gyp for its next run: with paths of this build, and more bytes than what it made. */
function isLeftover(directory: string, folder: string, name: string): boolean {
  const [isBuild, place = "", below] = /^(.*\/)?build(\/Release|\/Debug)?$/.exec(folder) ?? [];
  if (isBuild === undefined || !(below ? objectFiles : makeFiles).test(name)) return false;
  return ["binding.gyp", "build/config.gypi"].every(
    (file) => lstatSync(join(directory, place, file), { throwIfNoEntry: false }) !== undefined,
  );
}

const makeFiles = /^(?:Makefile|config\.gypi|node_gyp_bins|.*\.(?:mk|Makefile))$/;
const objectFiles = /^(?:\.deps|obj|obj\.target)$/;

/** What is below a directory is in the image below its prefix; earlier entries win. */
export function placesBelow(entries: readonly (readonly [string, string])[]): PlaceOf {
  return (file) => {
    for (const [directory, prefix] of entries) {
      const rest = relative(directory, file);
      if (rest === "") return prefix;
      if (rest !== ".." && !rest.startsWith(`..${sep}`))
        return `${prefix}/${rest.split(sep).join("/")}`;
    }
    return undefined;
  };
}

/** A link as npm makes them, from `.bin` to a package; one that leads out would be broken in the image. */
function linkInside(
  directory: string,
  name: string,
  path: string,
  placeOf: PlaceOf,
): string | undefined {
  const target = readlinkSync(join(directory, name));
  const place = placeOf(resolve(dirname(join(directory, name)), target));
  if (place === undefined)
    throw new UserError(
      `dependencies: ${name} is a link that leaves what is installed; packages must come from a registry, not from a path`,
    );
  return place === null ? undefined : posix.relative(posix.dirname(path), place);
}
