import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";

/**
 * All that is below a directory, folders before what is in them. Links are entries, and are not looked into: `readdirSync` with
 * `recursive` does so, and links to folders above let it see the same files thousands of times.
 */
export function entriesBelow(directory: string): Dirent[] {
  const found: Dirent[] = [];
  const visit = (folder: string) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      found.push(entry);
      if (entry.isDirectory()) visit(join(folder, entry.name));
    }
  };
  visit(directory);
  return found;
}
