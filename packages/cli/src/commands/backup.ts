import { createWriteStream, existsSync } from "node:fs";
import { mkdtemp, open, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { writeArchive } from "../backup/archive.ts";
import { collect } from "../backup/collect.ts";
import { UserError } from "../user-error.ts";
import { version } from "../version.ts";

export interface BackupOptions {
  dataDir: string;
}

/**
 * Saves a platform, running or not, to one file (`-`: standard output): objects of one moment, certificates,
 * keys and images. Waiting events and calls are saved only when the platform is stopped.
 */
export async function backup(file: string | undefined, options: BackupOptions): Promise<void> {
  const root = path.resolve(options.dataDir);
  if (!existsSync(path.join(root, "api")))
    throw new UserError(
      `${root} is not the data directory of a platform`,
      "specify it with --data-dir",
    );
  const target = path.resolve(file ?? `spry-${new Date().toISOString().replaceAll(":", "")}.tar`);
  const scratch = await mkdtemp(path.join(root, "backup-"));
  try {
    const { hasEvents } = await collect(root, scratch);
    if (!hasEvents)
      console.error(
        "Events and calls that wait are not saved: stop the platform first if they matter.",
      );
    if (file === "-") return await writeArchive(scratch, process.stdout, version);
    const partial = `${target}.partial`;
    try {
      await writeArchive(scratch, createWriteStream(partial, { mode: 0o600 }), version);
      await sync(partial);
      await rename(partial, target);
    } finally {
      await rm(partial, { force: true });
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  const megabytes = ((await stat(target)).size / 1e6).toFixed(1);
  console.error(`saved ${root} to ${target} (${megabytes} MB)`);
  console.error("It holds private keys and Secrets: keep it where only you can read it.");
}

async function sync(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
