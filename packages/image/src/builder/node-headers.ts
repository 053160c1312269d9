import { existsSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * The directory that node-gyp is to take Node.js' headers from (`nodedir`), so that native add-ons are compiled
 * without asking nodejs.org: those that came with the interpreter, or none. `home` is the run's own.
 */
export function nodeHeaders(home: string, program = process.execPath): string | undefined {
  const prefix = dirname(dirname(realpathSync(program)));
  const isHeaders = (directory: string) => existsSync(join(directory, "node.h"));
  if (isHeaders(join(prefix, "include/node"))) return prefix;
  // As the npm packages with an interpreter have them.
  const beside = join(prefix, "include");
  if (!isHeaders(beside)) return undefined;
  const made = join(home, "node-headers");
  const link = join(made, "include/node");
  if (existsSync(link)) return made;
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(beside, link);
  return made;
}
