import { accessSync, constants, existsSync, readdirSync, statfsSync } from "node:fs";
import path from "node:path";
import { UserError } from "../user-error.ts";
import { makeDirectories } from "../write-files.ts";
import { lockDataDir, lockName, ownerName, ownerOf } from "./data-dir-lock.ts";
import { diskProblem } from "./disk-problem.ts";
import { assertWholeFiles } from "./whole-files.ts";

export { readJson, writeAtomically } from "./state-files.ts";

/** Where everything of one platform lives on disk. Nothing outside of it is written. */
export interface DataDir {
  readonly root: string;
  readonly kubeconfig: string;
  readonly endpoints: string;
  readonly pki: string;
  readonly api: string;
  readonly node: string;
  readonly registry: string;
  readonly logs: string;
  /** True when nothing had been started here before. */
  readonly isNew: boolean;
  /** Lets another platform use the directory. */
  unlock(): void;
}

const parts = ["pki", "api", "node", "registry", "logs"] as const;
/** Below this not even the locks and logs of a start find a place. */
const minFreeBytes = 1024 ** 2;

/** Creates what is missing and keeps every other `spry up` out until `unlock`. */
export function openDataDir(root: string): DataDir {
  const at = (name: string) => path.join(root, name);
  const isNew = !existsSync(at("pki"));
  const unlock = prepare(root);
  return {
    root,
    kubeconfig: at("kubeconfig"),
    endpoints: at("endpoints.json"),
    pki: at("pki"),
    api: at("api"),
    node: at("node"),
    registry: at("registry"),
    logs: at("logs"),
    isNew,
    unlock,
  };
}

function prepare(root: string): () => void {
  try {
    if (existsSync(root)) {
      assertOurs(root);
      assertWholeFiles(root);
    }
    for (const dir of [root, ...parts.map((part) => path.join(root, part))]) {
      makeDirectories(dir, 0o700);
      accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    }
    const { bavail, bsize } = statfsSync(root);
    if (bavail * bsize < minFreeBytes) throw Object.assign(new Error(), { code: "ENOSPC" });
    return lockDataDir(root);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw (
      diskProblem(error, root) ??
      new UserError(
        `the data directory ${root} cannot be used: ${(error as Error).message}`,
        "choose another one with --data-dir",
      )
    );
  }
}

/** A directory that holds other files was most likely chosen by mistake: nothing of ours is mixed with them. */
function assertOurs(root: string): void {
  const entries = readdirSync(root).filter(
    (name) => !name.startsWith(".") && name !== "lost+found",
  );
  const ours = new Set<string>([...parts, lockName, ownerName, "kubeconfig", "registry.json"]);
  if (entries.length === 0 || entries.some((name) => ours.has(name))) return;
  throw new UserError(
    `the data directory ${root} holds other files (${entries.slice(0, 3).join(", ")}) and no data of Spry`,
    "choose an empty directory, or one that does not exist yet, with --data-dir",
  );
}

/** True while a platform uses the directory. */
export function isRunning(root: string): boolean {
  return ownerOf(root) !== undefined;
}
