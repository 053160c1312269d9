import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { identify, lifeOf, type ProcessIdentity, readIdentity } from "@spry/kube";
import { UserError } from "../user-error.ts";
import { makeDirectories } from "../write-files.ts";
import { diskProblem } from "./disk-problem.ts";

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
    if (existsSync(root)) assertOurs(root);
    for (const dir of [root, ...parts.map((part) => path.join(root, part))]) {
      makeDirectories(dir, 0o700);
      accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    }
    const { bavail, bsize } = statfsSync(root);
    if (bavail * bsize < minFreeBytes) throw Object.assign(new Error(), { code: "ENOSPC" });
    return lock(root);
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
  const ours = new Set<string>([...parts, "lock", "kubeconfig", "registry.json"]);
  if (entries.length === 0 || entries.some((name) => ours.has(name))) return;
  throw new UserError(
    `the data directory ${root} holds other files (${entries.slice(0, 3).join(", ")}) and no data of Spry`,
    "choose an empty directory, or one that does not exist yet, with --data-dir",
  );
}

/** The process that uses the directory, as far as that is known; undefined when it has ended. */
export function ownerOf(root: string): ProcessIdentity | undefined {
  const owner = readIdentity(readJson(path.join(root, "lock")));
  return owner && lifeOf(owner) !== "dead" ? owner : undefined;
}

/** True while a platform uses the directory. */
export function isRunning(root: string): boolean {
  return ownerOf(root) !== undefined;
}

/** A lock dies with its process: what counts is whether the process that wrote it still runs. */
function lock(root: string): () => void {
  const file = path.join(root, "lock");
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      writeFileSync(file, JSON.stringify(identify(process.pid)), { flag: "wx", mode: 0o600 });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const owner = ownerOf(root);
    if (owner) {
      throw new UserError(
        `another Spry (process ${owner.pid}) is running with the data directory ${root}`,
        "stop it, or choose another directory with --data-dir",
      );
    }
    rmSync(file, { force: true });
  }
  throw new UserError(`the data directory ${root} could not be locked`, "try again");
}

/** The content, for the caller to look at before it trusts it; undefined if there is none. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- says at the call what is expected
export function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    return undefined;
  }
}

/** A reader of the file sees the old content or the new one, never half of it. */
export function writeAtomically(file: string, content: string, mode = 0o644): void {
  writeFileSync(`${file}.new`, content, { mode });
  renameSync(`${file}.new`, file);
}
