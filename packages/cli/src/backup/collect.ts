import { createWriteStream } from "node:fs";
import { copyFile, link, mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { DamagedStoreError, snapshotStore } from "@spry/apiserver";
import { httpsTransport, loadKubeconfig, messageOf } from "@spry/kube";
import { isRunning } from "../platform/data-dir.ts";
import { UserError } from "../user-error.ts";

/**
 * Files that a start creates again, from the rest or from nothing. All else in a data directory is kept, also what
 * later versions will put there.
 */
const madeAnew = new Set([
  "api/state.db",
  "api/state.db-wal",
  "api/state.db-acknowledged",
  "endpoints.json",
  "gateway.json",
  "gateway.kubeconfig",
  "lock",
  "lock.db",
  "logs",
  "node",
  "npmrc",
  "pip.conf",
  "registry/scratch",
  "scratch",
]);
/** Written continuously, by one process: consistent only when the platform is stopped. */
const queue = ["events/queue.db", "events/queue.db-wal", "events/queue.db-shm"];

export interface Collected {
  /** Whether it includes the waiting events and calls. */
  hasEvents: boolean;
}

/** Gathers in the directory `into` what is to be kept of the data directory `root`, whether its platform runs or not. */
export async function collect(root: string, into: string): Promise<Collected> {
  // Objects first: the images that they name stay in the registry for longer than this takes.
  await mkdir(path.join(into, "api"), { recursive: true });
  await snapshot(root, path.join(into, "api/state.db"));
  const hasEvents = !isRunning(root);
  const left = new Set([...madeAnew, path.basename(into), ...(hasEvents ? [] : queue)]);
  await linkBelow(root, into, "", left);
  return { hasEvents };
}

async function snapshot(root: string, file: string): Promise<void> {
  if (isRunning(root)) return snapshotOfRunning(path.join(root, "kubeconfig"), file);
  try {
    await snapshotStore(path.join(root, "api"), file);
  } catch (error) {
    if (error instanceof DamagedStoreError)
      throw new UserError(error.message, "restore an earlier backup with `spry restore`");
    throw error;
  }
}

async function snapshotOfRunning(kubeconfig: string, file: string): Promise<void> {
  const config = loadKubeconfig(kubeconfig);
  let answer: Response;
  try {
    answer = await httpsTransport(config)(new Request(new URL("/snapshot", config.server)));
  } catch (error) {
    throw new UserError(
      `the running platform ${config.server} does not respond: ${messageOf(error)}`,
      "try again when it has started, or stop it first",
    );
  }
  if (!answer.ok || !answer.body) {
    const { message } = (await answer.json().catch(() => ({}))) as { message?: string };
    throw new UserError(`the running platform returned no snapshot: ${message ?? answer.status}`);
  }
  const expected = Number(answer.headers.get("content-length"));
  const output = createWriteStream(file, { mode: 0o600 });
  await pipeline(answer.body, output);
  if (output.bytesWritten !== expected)
    throw new UserError("the running platform interrupted its snapshot", "try again");
}

/** Links cost nothing and stay whole when the platform replaces or removes a file meanwhile. */
async function linkBelow(
  root: string,
  into: string,
  below: string,
  left: ReadonlySet<string>,
): Promise<void> {
  for (const entry of await readdir(path.join(root, below), { withFileTypes: true })) {
    const name = below ? `${below}/${entry.name}` : entry.name;
    if (left.has(name) || name.endsWith(".new")) continue;
    if (entry.isDirectory()) {
      await mkdir(path.join(into, name), { recursive: true, mode: 0o700 });
      await linkBelow(root, into, name, left);
    } else if (entry.isFile()) await linkFile(path.join(root, name), path.join(into, name));
  }
}

async function linkFile(from: string, to: string): Promise<void> {
  try {
    await link(from, to).catch(() => copyFile(from, to));
  } catch (error) {
    // Removed since its directory was read: then nothing needs it.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
