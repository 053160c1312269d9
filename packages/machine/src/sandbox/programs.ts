import { existsSync } from "node:fs";
import path from "node:path";

/** Whether a program is there: a path, or a name to be found by a `PATH`. */
export function isOnPath(program: string, searchPath: string): boolean {
  if (program.includes("/")) return existsSync(program);
  return searchPath.split(":").some((dir) => existsSync(path.join(dir, program)));
}
