import { randomBytes } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { type RegistryClient, type ResolvedImage } from "./client/registry-client.ts";
import { formatImageName, type ImageName, parseImageName } from "./image-name.ts";
import { type Platform } from "./manifest.ts";
import { unpackLayer, type UnpackLimits } from "./unpack-layer.ts";

export interface PullOptions {
  platform?: Platform;
  limits?: UnpackLimits;
  signal?: AbortSignal;
}

export interface PulledImage extends ResolvedImage {
  /** Bytes of the layers, decompressed. */
  size: number;
}

/**
 * Pulls an image and unpacks its layers into `dir`, which must not exist. It appears under that name whole, or not at
 * all; a crash leaves `<dir>.partial-*` next to it.
 */
export async function pullImage(
  client: RegistryClient,
  image: string | ImageName,
  dir: string,
  options: PullOptions = {},
): Promise<PulledImage> {
  const name = typeof image === "string" ? parseImageName(image) : image;
  try {
    const resolved = await client.resolveImage(name, options);
    return await unpackImage(client, resolved, dir, options);
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw new Error(`pulling image ${formatImageName(name)}`, { cause });
  }
}

/** As `pullImage`, of an image whose manifest is known already. */
export async function unpackImage(
  client: RegistryClient,
  image: ResolvedImage,
  dir: string,
  options: PullOptions = {},
): Promise<PulledImage> {
  const partial = `${dir}.partial-${randomBytes(4).toString("hex")}`;
  const totals = { size: 0, entries: 0 };
  await mkdir(partial, { recursive: true, mode: 0o755 });
  try {
    for (const [index, layer] of image.manifest.layers.entries()) {
      const diffId = image.config.rootfs.diff_ids[index];
      const content = client.getBlob(image.name, layer, { signal: options.signal });
      const limits = options.limits ?? {};
      await unpackLayer(content, partial, { totals, limits, ...(diffId ? { diffId } : {}) }).catch(
        (cause) => {
          throw new Error(`unpacking layer ${layer.digest}`, { cause });
        },
      );
    }
    await rename(partial, dir);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
  return { ...image, size: totals.size };
}
