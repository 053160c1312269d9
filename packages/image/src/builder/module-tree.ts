import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { type LayerFile } from "../layer.ts";
import { UserError } from "./user-error.ts";

const limits = { entries: 200_000, size: 2 * 1024 ** 3, depth: 64 };

/** The files of an installed tree as they go into a layer below `prefix`. */
export function readModules(
  directory: string,
  prefix: string,
): { files: LayerFile[]; size: number } {
  const files: LayerFile[] = [];
  let size = 0;

  const visit = (folder: string, depth: number) => {
    if (depth > limits.depth)
      throw new UserError(`dependencies: more than ${limits.depth} folders deep`);
    for (const entry of readdirSync(join(directory, folder), { withFileTypes: true })) {
      const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (name === ".package-lock.json") continue;
      const file = join(directory, name);
      const path = `${prefix}/${name}`;
      if (entry.isDirectory()) visit(name, depth + 1);
      else if (entry.isSymbolicLink()) files.push({ path, link: linkInside(directory, name) });
      else if (entry.isFile()) {
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

/** A link as npm makes them, from `.bin` to a package; one that leads out would be broken in the image. */
function linkInside(directory: string, name: string): string {
  const target = readlinkSync(join(directory, name));
  const absolute = resolve(dirname(join(directory, name)), target);
  if (!absolute.startsWith(resolve(directory) + sep))
    throw new UserError(
      `dependencies: ${name} is a link that leaves what is installed; packages must come from a registry, not from a path`,
    );
  return relative(dirname(join(directory, name)), absolute)
    .split(sep)
    .join("/");
}
