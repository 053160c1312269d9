import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import path from "node:path";

/**
 * `O_PATH` of open(2), which Node.js has no name for: a place in the file system, without the effects that opening a
 * FIFO or a device has. Not 0x200000 on alpha, parisc and sparc, where Node.js does not run.
 */
export const pathOnly = 0x20_0000;
const place = pathOnly | constants.O_NOFOLLOW;
const directory = place | constants.O_DIRECTORY;

/** Something that is held open, so that it can be recognized whatever its name leads to by then. */
export interface OpenPlace {
  /** Its real name, when it was opened. */
  readonly name: string;
  /** A path for other processes of the same user, as long as this one holds the place open. */
  readonly path: string;
  readonly isDirectory: boolean;
  close(): void;
}

/** A path leads out of the directory that it has to stay in. */
export class LeadsOut extends Error {}

/**
 * Opens what `file` leads to, which has to be below `root`. Links are followed once, by name; what they lead to is
 * then opened step by step without following any: a container that can write below `root` may have exchanged them in between
 * (`doSafeOpen` in Kubernetes' `pkg/volume/util/subpath/subpath_linux.go`). Linux only. Throws a LeadsOut for what is
 * elsewhere, and the system's error for what does not exist (any more).
 */
export function openBeneath(root: string, file: string): OpenPlace {
  const real = realpathSync(file);
  const parts = partsBeneath(root, real);
  const descriptor = walk(openSync(root, directory), parts, open);
  return {
    name: real,
    isDirectory: fstatSync(descriptor).isDirectory(),
    path: `/proc/${process.pid}/fd/${descriptor}`,
    close: () => closeSync(descriptor),
  };
}

/**
 * Makes the directories of `relative` that are missing below `root`, each with root's own mode, as `doSafeMakeDir` of
 * the same file does; what is there already may also be a file. Throws a LeadsOut for a path that leads elsewhere.
 * On systems without `/proc`, where containers are not kept apart, links are followed.
 */
export function makeBeneath(root: string, relative: string): void {
  const { existing, missing } = existingPart(path.join(root, relative));
  const real = realpathSync(root);
  const parts = partsBeneath(real, existing);
  if (missing.length === 0) return;
  if (process.platform !== "linux") {
    mkdirSync(path.join(existing, ...missing), { recursive: true });
    return;
  }
  const mode = statSync(real).mode & 0o7777;
  const above = walk(openSync(real, directory), parts, (at) => open(at, false));
  closeSync(walk(above, missing, (at) => make(at, mode)));
}

/**
 * Goes down from a directory, which is closed; returns a descriptor of the last place. `step` gets a path by which the
 * next one is below the one before, whatever has happened to names since.
 */
function walk(
  start: number,
  parts: readonly string[],
  step: (at: string, isLast: boolean) => number,
): number {
  let at = start;
  for (const [index, part] of parts.entries()) {
    const above = at;
    try {
      at = step(`/proc/self/fd/${above}/${part}`, index === parts.length - 1);
    } finally {
      closeSync(above);
    }
  }
  return at;
}

function make(at: string, mode: number): number {
  try {
    mkdirSync(at, mode & 0o777);
  } catch (error) {
    // Another container has been faster.
    if (codeOf(error) === "EEXIST") return open(at, false);
    throw error;
  }
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const made = opened(() => openSync(at, flags));
  // mkdir(2) heeds this program's umask.
  fchmodSync(made, mode);
  return made;
}

function open(at: string, isLast: boolean): number {
  const descriptor = opened(() => openSync(at, isLast ? place : directory));
  if (!fstatSync(descriptor).isSymbolicLink()) return descriptor;
  closeSync(descriptor);
  throw exchanged();
}

/** A link, or since a moment ago no directory. */
function opened(attempt: () => number): number {
  try {
    return attempt();
  } catch (error) {
    throw ["ENOTDIR", "ELOOP"].includes(codeOf(error) ?? "") ? exchanged() : error;
  }
}

const exchanged = () => new LeadsOut("a part of it has been exchanged meanwhile");

function partsBeneath(root: string, real: string): string[] {
  if (real !== root && !real.startsWith(`${root}/`)) throw new LeadsOut("it leads outside");
  return path.relative(root, real).split("/").filter(Boolean);
}

/** Where the longest part of a path that exists really is, and what is missing below it. */
function existingPart(file: string): { existing: string; missing: string[] } {
  const missing: string[] = [];
  for (let at = file; ; at = path.dirname(at)) {
    const existing = realPath(at);
    if (existing !== undefined) return { existing, missing };
    if (isLink(at)) throw new LeadsOut("it is a broken link");
    missing.unshift(path.basename(at));
  }
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function isLink(file: string): boolean {
  try {
    readlinkSync(file);
    return true;
  } catch {
    return false;
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;
