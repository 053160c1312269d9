import { chmod, cp, mkdir, readdir, rm } from "node:fs/promises";
import { chmodSync, lstatSync, mkdirSync } from "node:fs";
import path from "node:path";
import { bindMount, type OciMount } from "./oci-spec.ts";

export interface RootFileSystemOptions {
  /** The container's bundle: `rootfs/`, `upper/` and `work/` are made in it. */
  bundle: string;
  imageRoot: string;
  /** What the image lacks; nothing for an image that brings everything itself. */
  base?: string | undefined;
  /** Whether this machine can overlay directories here. */
  overlay: boolean;
}

/**
 * Prepares a container's own root file system and returns the mounts that complete it. They are made
 * by the runtime inside the container's mount namespace, so they end with the container whatever
 * happens here: the host's mount table never sees them.
 */
export async function prepareRoot(options: RootFileSystemOptions): Promise<OciMount[]> {
  const { bundle, imageRoot, base, overlay } = options;
  const rootfs = path.join(bundle, "rootfs");
  mkdirSync(rootfs, { recursive: true });
  const layers = base === undefined ? [imageRoot] : [imageRoot, base];
  if (overlay && layers.concat(bundle).every(isOverlayPath)) return [overlayMount(bundle, layers)];
  return copyRoot(rootfs, imageRoot, base);
}

/** Its options are one text, in which these characters have a meaning. */
function isOverlayPath(file: string): boolean {
  return !/[,:\\"\s]/.test(file);
}

function overlayMount(bundle: string, layers: readonly string[]): OciMount {
  const upper = path.join(bundle, "upper");
  const work = path.join(bundle, "work");
  for (const dir of [upper, work]) {
    mkdirSync(dir, { recursive: true });
    // The root directory of the container gets this mode.
    chmodSync(dir, 0o755);
  }
  return {
    destination: "/",
    type: "overlay",
    source: "overlay",
    options: [`lowerdir=${layers.join(":")}`, `upperdir=${upper}`, `workdir=${work}`],
  };
}

/** Without overlays: a copy of the image, into which everything of the base is bound that it lacks. */
async function copyRoot(
  rootfs: string,
  imageRoot: string,
  base: string | undefined,
): Promise<OciMount[]> {
  await rm(rootfs, { recursive: true, force: true });
  await cp(imageRoot, rootfs, {
    recursive: true,
    verbatimSymlinks: true,
    preserveTimestamps: true,
  });
  chmodSync(rootfs, 0o755);
  if (base === undefined) return [];
  // More is mounted into these: they cannot be the base's own, which is read-only.
  for (const entry of await readdir(base, { withFileTypes: true }))
    if (entry.isDirectory()) await mkdir(path.join(rootfs, entry.name), { recursive: true });
  await chmod(path.join(rootfs, "tmp"), 0o1777);
  return missingIn(rootfs, base, "/");
}

async function missingIn(rootfs: string, base: string, dir: string): Promise<OciMount[]> {
  const mounts: OciMount[] = [];
  for (const entry of await readdir(path.join(base, dir), { withFileTypes: true })) {
    const name = path.posix.join(dir, entry.name);
    const source = path.join(base, name);
    const there = lstatSync(path.join(rootfs, name), { throwIfNoEntry: false });
    if (there === undefined) {
      // A link cannot be bound: it would be followed on the host.
      if (entry.isSymbolicLink())
        await cp(source, path.join(rootfs, name), { verbatimSymlinks: true });
      else mounts.push(bindMount(source, name, true));
    } else if (entry.isDirectory() && there.isDirectory())
      mounts.push(...(await missingIn(rootfs, base, name)));
  }
  return mounts;
}
