import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { access, mkdir, rename } from "node:fs/promises";
import path from "node:path";
import { setImmediate } from "node:timers/promises";
import {
  type EarlierVersion,
  ImageError,
  PlacedFiles,
  type RegistryClient,
  type ResolvedImage,
  unpackLayer,
} from "@spry/image";
import { removeTree } from "../sandbox/remove-tree.ts";

/** Below this many compressed bytes, unpacking again is as quick as linking. */
const worthSharing = 256 * 1024;
/** Below this many compressed bytes, a last layer is written as quickly as it is compared with an earlier one. */
const worthComparing = 64 * 1024;
/** Four times as many as Docker makes. */
const maxLayers = 512;
/** Entries linked between two turns of the event loop. */
const linkBatch = 200;

export interface UnpackedImage {
  /** Bytes of the layers that were unpacked for it. */
  size: number;
  /** The directory under `sharedDir` whose files it shares. */
  base?: string;
  /** What the last layer has brought, where that is worth knowing. */
  placed?: PlacedFiles | undefined;
}

interface UnpackOptions {
  dir: string;
  sharedDir: string;
  isChecked: boolean;
  /** An image of the same repository: unchanged files of the last layer are shared with it. */
  earlier?: EarlierVersion | undefined;
  /** See `unpackLayer`. */
  keepsOwners: boolean;
}

/**
 * Unpacks an image into `dir`. All layers but the last are unpacked once, in `sharedDir`, next to the images, and
 * shared by hard links: an edit of a Function's code changes the last layer only, and its dependencies are thousands
 * of files. `isChecked`: the registry accepts no manifest with layers that its sender could not pull. From any other
 * registry, a manifest can name layers of anyone: they are shared only once the registry has given them to this
 * client.
 */
export async function unpackImageLayers(
  client: RegistryClient,
  image: ResolvedImage,
  { dir, sharedDir, isChecked, earlier, keepsOwners }: UnpackOptions,
): Promise<UnpackedImage> {
  const { layers } = image.manifest;
  if (layers.length > maxLayers)
    throw new Error(`the image has ${layers.length} layers, more than the ${maxLayers} taken`);
  const isWorth = (layers.at(-1)?.size ?? 0) >= worthComparing;
  const last = isWorth ? { earlier, placed: new PlacedFiles() } : {};
  const options = { keepsOwners, last };
  const lower = layers.slice(0, -1);
  const lowerBytes = lower.reduce((sum, { size }) => sum + size, 0);
  if (lowerBytes < worthSharing) {
    await mkdir(dir, { mode: 0o755 });
    const size = await unpackRange(client, image, dir, 0, layers.length, options);
    return { size, placed: last.placed };
  }
  // Of one registry: another one could claim to have any. With owners, the files are not the same ones.
  const digests = lower.map(({ digest }) => digest);
  const id = createHash("sha256")
    .update([image.name.host, ...digests, ...(keepsOwners ? ["owners"] : [])].join())
    .digest("hex");
  const base = `base-${id}`;
  if (!isChecked && (await exists(path.join(sharedDir, base)))) await requireLayers(client, image);
  const size = await ensureBase(
    client,
    image,
    path.join(sharedDir, base),
    lower.length,
    keepsOwners,
  );
  await linkTree(path.join(sharedDir, base), dir, keepsOwners);
  return {
    size: size + (await unpackRange(client, image, dir, lower.length, layers.length, options)),
    base,
    placed: last.placed,
  };
}

/** Throws when the registry does not give a layer to this client, from the image's own repository. */
export async function requireLayers(
  client: RegistryClient,
  { name, manifest }: ResolvedImage,
): Promise<void> {
  for (const { digest } of manifest.layers)
    if (!(await client.hasBlob(name, digest)))
      throw new ImageError(`${name.host} does not give every layer of ${name.repository}`);
}

async function ensureBase(
  client: RegistryClient,
  image: ResolvedImage,
  base: string,
  count: number,
  keepsOwners: boolean,
): Promise<number> {
  if (await exists(base)) return 0;
  const partial = `${base}.partial-${randomBytes(4).toString("hex")}`;
  try {
    await mkdir(partial, { mode: 0o755 });
    const size = await unpackRange(client, image, partial, 0, count, { keepsOwners });
    // Another pull may have been faster: then theirs is as good.
    await rename(partial, base).catch(async (error: unknown) => {
      if (!(await exists(base))) throw error;
    });
    return size;
  } finally {
    await removeTree(partial);
  }
}

async function unpackRange(
  client: RegistryClient,
  { name, manifest, config }: ResolvedImage,
  dir: string,
  from: number,
  to: number,
  {
    keepsOwners,
    last = {},
  }: {
    keepsOwners: boolean;
    last?: { earlier?: EarlierVersion | undefined; placed?: PlacedFiles };
  },
): Promise<number> {
  const totals = { size: 0, entries: 0 };
  for (let i = from; i < to; i++) {
    const layer = manifest.layers[i];
    const diffId = config.rootfs.diff_ids[i];
    if (!layer) continue;
    await unpackLayer(client.getBlob(name, layer), dir, {
      totals,
      keepsOwners,
      ...(i === manifest.layers.length - 1 ? last : {}),
      ...(diffId ? { diffId } : {}),
    });
  }
  return totals.size;
}

/** Makes `to` a tree of its own with the files of `from`, as hard links. Symbolic links are created again. */
async function linkTree(from: string, to: string, keepsOwners: boolean): Promise<void> {
  const pending = [""];
  let entries = 0;
  for (let dir = pending.pop(); dir !== undefined; dir = pending.pop()) {
    mkdirSync(path.join(to, dir), { mode: 0o755 });
    copyDirectoryRights(path.join(from, dir), path.join(to, dir), keepsOwners);
    for (const entry of readdirSync(path.join(from, dir), { withFileTypes: true })) {
      const name = path.join(dir, entry.name);
      if (entry.isDirectory()) pending.push(name);
      else if (entry.isSymbolicLink())
        symlinkSync(readlinkSync(path.join(from, name)), path.join(to, name));
      else linkSync(path.join(from, name), path.join(to, name));
      if (++entries % linkBatch === 0) await setImmediate();
    }
  }
}

function copyDirectoryRights(from: string, to: string, keepsOwners: boolean): void {
  const { mode, uid, gid } = statSync(from);
  if (keepsOwners && (uid !== 0 || gid !== 0)) lchownSync(to, uid, gid);
  const isForAll = (mode & 0o1777) === 0o1777;
  if (isForAll || (keepsOwners && (mode & 0o1777) !== 0o755)) chmodSync(to, mode & 0o1777);
}

async function exists(dir: string): Promise<boolean> {
  return access(dir).then(
    () => true,
    () => false,
  );
}
