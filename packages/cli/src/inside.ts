import { realpathSync } from "node:fs";
import path from "node:path";

/**
 * Whether a file or directory that exists is in a directory, or is it; symbolic links are followed. For paths that are read
 * from a file of a repository, which may not be trustworthy.
 */
export function isInside(directory: string, target: string): boolean {
  const root = realpathSync(directory);
  const real = realpathSync(target);
  return real === root || real.startsWith(root.endsWith(path.sep) ? root : root + path.sep);
}
