import { lstatSync, realpathSync } from "node:fs";
import { mkdir, opendir, rm, symlink } from "node:fs/promises";
import path from "node:path";
import { openBeneath, type OpenPlace } from "./open-beneath.ts";
import { type Mount } from "./sandbox.ts";

/**
 * The process sandbox has no root file system of its own, so the container's absolute paths are
 * turned into real ones where they can be seen: in commands, arguments and environment.
 */
export class PathRewriter {
  readonly #imageRoot: string;
  /** Longest first: the innermost mount wins. */
  readonly #mounts: readonly Mount[];

  constructor(imageRoot: string, mounts: readonly Mount[]) {
    this.#imageRoot = imageRoot;
    this.#mounts = mounts
      .map((mount) => ({
        ...mount,
        mountPath: path.posix.normalize(mount.mountPath).replace(/\/$/, ""),
      }))
      .sort((a, b) => b.mountPath.length - a.mountPath.length);
  }

  /** The real path; undefined when the string is not a path that the container has. */
  realPath(text: string): string | undefined {
    if (!text.startsWith("/") || text.length > 4096 || text.includes("\0")) return undefined;
    // The root itself says nothing about the container: `PUBLIC_PATH=/` is not a file.
    const normal = path.posix.normalize(text);
    if (normal === "/") return undefined;
    const mount = this.#mounts.find(
      ({ mountPath }) => normal === mountPath || normal.startsWith(`${mountPath}/`),
    );
    if (mount) return mount.source + normal.slice(mount.mountPath.length);
    const inImage = path.join(this.#imageRoot, normal);
    return exists(inImage) ? inImage : undefined;
  }

  /** An argument or value: a path as a whole, or as the value of a flag (`--source=/workspace`). */
  rewrite(text: string): string {
    const whole = this.realPath(text);
    if (whole !== undefined) return whole;
    const flag = /^(--?[A-Za-z0-9][\w.-]*=)(\/.*)$/s.exec(text);
    if (!flag) return text;
    return `${flag[1]}${this.realPath(flag[2] ?? "") ?? flag[2]}`;
  }
}

function exists(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

/**
 * Builds the directory under which the image's paths and the mounts are found by prefixing
 * (`SPRY_ROOT`): links to the image, with real directories only along the way to a mount.
 */
export async function buildRootView(
  rootDir: string,
  imageRoot: string,
  mounts: readonly Mount[],
): Promise<void> {
  await rm(rootDir, { recursive: true, force: true });
  const tree = new Map<string, Branch>();
  for (const { mountPath, source } of mounts) {
    const parts = path.posix.normalize(mountPath).split("/").filter(Boolean);
    insert(tree, parts, source);
  }
  await buildDirectory(rootDir, { dir: imageRoot, within: imageRoot }, tree);
}

/** Next to mounts: directories on the way to one have a link for each of their entries. */
const maxEntries = 10_000;

/** A directory of the image or of a volume, which others have filled. */
interface Below {
  dir: string;
  /** The image, or the volume: what leads out of it is not looked at. */
  within: string;
}

/** A path's next steps towards mounts; `source` where a mount is. */
interface Branch {
  source?: string;
  children: Map<string, Branch>;
}

function insert(tree: Map<string, Branch>, parts: readonly string[], source: string): void {
  const [first, ...rest] = parts;
  if (first === undefined) return;
  const branch = tree.get(first) ?? { children: new Map<string, Branch>() };
  tree.set(first, branch);
  if (rest.length === 0) branch.source = source;
  else insert(branch.children, rest, source);
}

async function buildDirectory(
  dir: string,
  below: Below | undefined,
  tree: ReadonlyMap<string, Branch>,
): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o755 });
  const entries = below === undefined ? [] : await entriesOf(below);
  for (const name of entries)
    if (below !== undefined && !tree.has(name))
      await symlink(path.join(below.dir, name), path.join(dir, name));
  const branches = [...tree].map(async ([name, { source, children }]) => {
    const at = path.join(dir, name);
    const own = source === undefined ? undefined : { dir: source, within: source };
    const under = own ?? (below && { dir: path.join(below.dir, name), within: below.within });
    if (children.size > 0) await buildDirectory(at, under, children);
    else if (source !== undefined) await symlink(source, at);
  });
  await Promise.all(branches);
}

/** Throws for more than 10,000. A container may have put a link in the place of a volume's directory: nothing is behind it. */
async function entriesOf({ dir, within }: Below): Promise<string[]> {
  using place = placeWithin(dir, within);
  if (!place) return [];
  const opened = await opendir(place.path, { bufferSize: 500 }).catch(() => undefined);
  const names: string[] = [];
  for await (const { name } of opened ?? []) {
    names.push(name);
    if (names.length > maxEntries)
      throw new Error(
        `a directory with a mount below it has more than ${maxEntries} entries: mount the volume elsewhere`,
      );
  }
  return names;
}

/** Held open, so that it stays what it is. */
function placeWithin(
  dir: string,
  within: string,
): (Pick<OpenPlace, "path"> & Disposable) | undefined {
  // Containers are not kept apart elsewhere.
  if (process.platform !== "linux") return { path: dir, [Symbol.dispose]: () => {} };
  try {
    const place = openBeneath(realpathSync(within), dir);
    return { ...place, [Symbol.dispose]: () => place.close() };
  } catch {
    return undefined;
  }
}
