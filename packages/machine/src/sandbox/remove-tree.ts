import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { promisify } from "node:util";

/**
 * Removes what a Pod has left, whatever it is. A Pod can nest directories more deeply than a path can be long, which Node.js does not
 * remove; rm(1) goes down step by step. A process that is being killed may still be writing: tried several times.
 */
export async function removeTree(dir: string): Promise<void> {
  try {
    await rm(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENAMETOOLONG") throw error;
    await promisify(execFile)("rm", ["-rf", "--", dir]);
  }
}
