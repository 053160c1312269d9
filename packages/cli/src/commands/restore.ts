import { createReadStream, existsSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { adoptRestoredStore, DamagedStoreError } from "@spry/apiserver";
import { readArchive } from "../backup/archive.ts";
import { isRunning } from "../platform/data-dir.ts";
import { UserError } from "../user-error.ts";
import { down } from "./down.ts";
import { spryCommand, startCommand } from "../shown-command.ts";

export interface RestoreOptions {
  dataDir: string;
  force?: boolean;
}

/**
 * Puts a backup (`-`: standard input) in the place of a data directory, which must not be in use. All is checked
 * before anything is replaced; the previous content is kept next to it.
 */
export async function restore(file: string, options: RestoreOptions): Promise<void> {
  const root = path.resolve(options.dataDir);
  await makeRoom(root, options.force ?? false);
  const restoring = `${root}.restoring-${process.pid}`;
  await mkdir(restoring, { recursive: true, mode: 0o700 });
  try {
    const input = file === "-" ? process.stdin : createReadStream(existing(path.resolve(file)));
    const { createdAt, version } = await readArchive(input, restoring);
    const { objects } = await adopt(path.join(restoring, "api"));
    const aside = await putAside(root);
    await rename(restoring, root);
    console.error(`restored ${objects} objects of ${createdAt} (Spry ${version}) to ${root}`);
    if (aside) console.error(`the previous content is in ${aside}`);
    console.error(`start it with: ${startCommand(`--data-dir ${path.relative("", root) || "."}`)}`);
  } finally {
    await rm(restoring, { recursive: true, force: true });
  }
}

/** Nothing may run on the directory, not even what a crash left; its content is replaced only with `--force`. */
async function makeRoom(root: string, force: boolean): Promise<void> {
  if (isRunning(root)) {
    throw new UserError(
      `a platform is running with the data directory ${root}`,
      `stop it first: ${spryCommand(`down --data-dir ${root}`)}`,
    );
  }
  const isUsed = existsSync(root) && (await readdir(root)).length > 0;
  if (isUsed && !force) {
    throw new UserError(
      `the data directory ${root} is not empty`,
      "use --force to move it aside, or choose another one with --data-dir",
    );
  }
  if (existsSync(path.join(root, "node"))) await down({ dataDir: root });
}

async function adopt(apiDir: string): Promise<{ objects: number }> {
  try {
    return await adoptRestoredStore(apiDir);
  } catch (error) {
    if (!(error instanceof DamagedStoreError)) throw error;
    throw new UserError(
      `the backup's ${error.message}`,
      "use another one: nothing has been changed",
    );
  }
}

async function putAside(root: string): Promise<string | undefined> {
  if (!existsSync(root)) return undefined;
  const aside = `${root}.before-restore-${new Date().toISOString().replaceAll(":", "")}`;
  await rename(root, aside);
  return aside;
}

function existing(file: string): string {
  if (!existsSync(file))
    throw new UserError(`file ${file} does not exist`, "name a file that spry backup has written");
  return file;
}
