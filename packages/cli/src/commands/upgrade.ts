import { existsSync } from "node:fs";
import path from "node:path";
import { isRunning, openDataDir } from "../platform/data-dir.ts";
import { spryCommand, startCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";
import { version } from "../version.ts";
import { backup } from "./backup.ts";
import { verifyAll } from "./doctor.ts";

/**
 * Prepares a data directory for this version: checks that it is intact and not of a newer version, and saves it to a file. Its
 * format is migrated by the next start, if necessary; this command changes nothing.
 */
export async function upgrade(options: { dataDir: string }): Promise<void> {
  const root = path.resolve(options.dataDir);
  if (!existsSync(root))
    throw new UserError(`the data directory ${root} does not exist`, "name it with --data-dir");
  if (isRunning(root))
    throw new UserError(
      `a platform is running with the data directory ${root}`,
      `stop it first: ${spryCommand(`down --data-dir ${options.dataDir}`)}`,
    );
  const dataDir = openDataDir(root);
  try {
    await verifyAll(dataDir, (line) => console.log(line));
  } finally {
    dataDir.unlock();
  }
  const file = `${root}-before-${version}.backup`;
  if (existsSync(file)) console.log(`${file} exists already and is kept`);
  else await backup(file, options);
  console.log(`Spry ${version} can use it: ${startCommand(`--data-dir ${options.dataDir}`)}`);
}
