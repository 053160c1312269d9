/** How much a source may have: the same numbers as in the builder, which reads what was fetched. */
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Of the files that come to a build; `modules`: submodules, those in submodules counted, too. */
export const sourceLimits = { files: 10_000, bytes: 100_000_000, modules: 50, depth: 8 };

/** What a build does not read. */
const leftOut = new Set(["node_modules", "__pycache__", ".venv", ".git"]);

/** Files below a directory, with their sizes in bytes; links are counted and not followed. Ends early above twice the limit. */
export function filesIn(directory: string): { path: string; size: number }[] {
  const files: { path: string; size: number }[] = [];
  const visit = (folder: string) => {
    for (const entry of readdirSync(join(directory, folder), { withFileTypes: true })) {
      if (leftOut.has(entry.name) || files.length > sourceLimits.files * 2) continue;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) visit(path);
      else files.push({ path, size: entry.isFile() ? lstatSync(join(directory, path)).size : 0 });
    }
  };
  visit("");
  return files;
}

/** In decimal megabytes, as the limit is. */
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** How a path of a repository is shown: its author chose it. */
export const shownPath = (path: string): string => JSON.stringify(path.slice(0, 200));
