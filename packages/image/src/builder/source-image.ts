/** A source as an image: one layer of files and nothing else, which `spry deploy` pushes. */
import { mkdirSync, readdirSync } from "node:fs";
import { assembleImage } from "../assemble-image.ts";
import { type RegistryClient } from "../client/registry-client.ts";
import { isNotFound } from "../client/registry-error.ts";
import { formatImageName, type ImageName, parseImageName } from "../image-name.ts";
import { createLayer, type LayerFile } from "../layer.ts";
import { type Descriptor, isIndex } from "../manifest.ts";
import { pushImage } from "../push-image.ts";
import { unpackLayer } from "../unpack-layer.ts";
import { sourceLimits } from "./function-source.ts";
import { UserError } from "./user-error.ts";

/** Tags of sources begin with it; a registry's retention knows them by that. */
export const sourceTagPrefix = "source-";
/** Of headers and padding: each file has at most so many bytes of them. */
const tarOverhead = 4096;
/** The same on each machine that sends one: a source runs nowhere. */
const platform = { os: "unknown", architecture: "unknown" };

/** A source that is ready to be sent. */
export interface SourceImage {
  /** Digest of its manifest: the same files have the same, wherever it was made. */
  digest: string;
  /** Of the layer, in bytes. */
  size: number;
  /** Sends what the repository (`host/path`) lacks. Returns the image's name by digest, and how many bytes were sent. */
  push(client: RegistryClient, repository: string): Promise<{ image: string; sentBytes: number }>;
}

/** Makes the layer. `scratchFile`: where a large one is kept until it is sent. */
export async function createSourceImage(
  files: readonly LayerFile[],
  scratchFile: string,
): Promise<SourceImage> {
  const layer = await createLayer(files, { scratchFile });
  const image = assembleImage({ layers: [layer], platform });
  return {
    digest: image.digest,
    size: layer.descriptor.size,
    async push(client, repository) {
      const name = parseImageName(`${repository}:${sourceTagPrefix}${image.digest.slice(7)}`);
      const isThere = (await client.headManifest(name)) === image.digest;
      const { sentBytes } = isThere ? { sentBytes: 0 } : await pushImage(client, image, name);
      const { host, repository: path } = name;
      return {
        image: formatImageName({ host, repository: path, digest: image.digest }),
        sentBytes,
      };
    },
  };
}

/** Unpacks a source into an empty directory. Throws a `UserError` for an image that is not one. */
export async function fetchSourceImage(
  client: RegistryClient,
  image: string,
  directory: string,
  report: (line: string) => void = () => {},
): Promise<void> {
  mkdirSync(directory, { recursive: true });
  // A container that is started again finds what it has unpacked.
  if (readdirSync(directory).length > 0) return;
  const { name, layer, maxBytes } = await sourceLayerOf(client, image);
  await unpackLayer(client.getBlob(name, layer), directory, { limits: { size: maxBytes } });
  report(`fetched source ${name.digest}`);
}

/** Where a source's files are. `maxBytes`: of the tar. Throws a `UserError` for an image that is not a source. */
export async function sourceLayerOf(
  client: RegistryClient,
  image: string,
): Promise<{ name: ImageName; layer: Descriptor; maxBytes: number }> {
  const name = parseImageName(image);
  const maxBytes = sourceLimits.size + sourceLimits.files * tarOverhead;
  try {
    const { manifest } = await client.getManifest(name);
    const [layer, ...others] = isIndex(manifest) ? [] : manifest.layers;
    if (!layer || others.length > 0)
      throw new UserError(`source: ${image} is not a source: it must have exactly one layer`);
    if (layer.size > maxBytes)
      throw new UserError(`source: larger than ${sourceLimits.size / 1e6} MB`);
    return { name, layer, maxBytes };
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new UserError(
      `source: ${image} is no longer in the registry: deploy the directory again`,
    );
  }
}
