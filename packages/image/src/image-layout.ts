import { createReadStream, createWriteStream, existsSync, readFileSync, statSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type AssembledImage, type BaseImage, configBlob } from "./assemble-image.ts";
import { type Body } from "./client/http.ts";
import { type Digest, digestOf, parseDigest, verifyContent } from "./digest.ts";
import {
  currentPlatform,
  type Descriptor,
  type ImageConfig,
  type ImageIndex,
  type ImageManifest,
  isIndex,
  manifestSizeLimit,
  mediaTypes,
  type Platform,
  selectPlatform,
} from "./manifest.ts";

/** An image in a directory of the OCI image layout specification. */
export interface LayoutImage extends BaseImage {
  digest: Digest;
  bodyOf: (layer: Descriptor) => Body;
}

const configSizeLimit = 4 * 1024 * 1024;
const refName = "org.opencontainers.image.ref.name";
const layoutVersion = '{"imageLayoutVersion":"1.0.0"}';

/**
 * Reads an image of an OCI layout directory (image specification 1.1, "Image Layout"): the one with
 * this reference name, or the only one, of an index the entry for the platform. Everything is
 * verified against its digest, layers while they are read.
 */
export function readImageLayout(
  dir: string,
  options: { reference?: string | undefined; platform?: Platform } = {},
): LayoutImage {
  try {
    const index = readJson(join(dir, "index.json")) as ImageIndex;
    let entry = chosen(index, options.reference, options.platform ?? currentPlatform());
    let manifest = readBlob(dir, entry, manifestSizeLimit) as ImageManifest | ImageIndex;
    if (isIndex(manifest)) {
      entry = selectPlatform(manifest, options.platform ?? currentPlatform());
      manifest = readBlob(dir, entry, manifestSizeLimit) as ImageManifest | ImageIndex;
      if (isIndex(manifest)) throw new Error("an index in an index");
    }
    const config = readBlob(dir, manifest.config, configSizeLimit) as ImageConfig;
    const bodyOf = (layer: Descriptor): Body => ({
      size: layer.size,
      open: () => verifyContent(createReadStream(blobFile(dir, layer.digest)), layer),
    });
    return { digest: parseDigest(entry.digest), manifest, config, bodyOf };
  } catch (cause) {
    throw new Error(`reading the OCI layout ${dir}`, { cause });
  }
}

/** Writes an image into a layout directory, under a reference name; what else is there stays. */
export async function writeImageLayout(
  image: AssembledImage,
  dir: string,
  reference: string,
): Promise<void> {
  await mkdir(join(dir, "blobs", "sha256"), { recursive: true });
  for (const { descriptor, body } of [...image.layers, configBlob(image)]) {
    if (!body) throw new Error(`writing ${dir}: layer ${descriptor.digest} is not available`);
    await writeBlob(dir, descriptor, body);
  }
  const entry = { mediaType: image.mediaType, digest: image.digest, size: image.bytes.length };
  await writeBlob(dir, entry, { size: entry.size, open: () => image.bytes });
  const file = join(dir, "index.json");
  const others = existsSync(file) ? (readJson(file) as ImageIndex).manifests : [];
  const manifests = [
    ...others.filter(({ annotations }) => annotations?.[refName] !== reference),
    { ...entry, annotations: { [refName]: reference } },
  ];
  await writeFile(join(dir, "oci-layout"), layoutVersion);
  const index = JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests });
  await writeFile(`${file}.partial`, index);
  await rename(`${file}.partial`, file);
}

function chosen(
  { manifests }: ImageIndex,
  reference: string | undefined,
  platform: Platform,
): Descriptor {
  if (!Array.isArray(manifests)) throw new Error("index.json lists no manifests");
  const names = manifests.flatMap(({ annotations }) => annotations?.[refName] ?? []);
  if (reference !== undefined) {
    const named = manifests.find(({ annotations }) => annotations?.[refName] === reference);
    if (named) return named;
    throw new Error(
      `image ${reference} not found; available: ${names.join(", ") || "none with a name"}`,
    );
  }
  if (new Set(names).size > 1) throw new Error(`which image? There are ${names.join(", ")}`);
  return selectPlatform({ schemaVersion: 2, manifests }, platform);
}

function readBlob(dir: string, { digest, size }: Descriptor, limit: number): unknown {
  const file = blobFile(dir, parseDigest(digest));
  if (size > limit || statSync(file).size > limit)
    throw new Error(`${digest}: more than the ${limit} bytes taken`);
  const bytes = readFileSync(file);
  const actual = digestOf(bytes);
  if (actual !== digest) throw new Error(`${digest}: the content has digest ${actual}`);
  return JSON.parse(bytes.toString());
}

function readJson(file: string): unknown {
  if (statSync(file).size > manifestSizeLimit)
    throw new Error(`${file}: more than the ${manifestSizeLimit} bytes taken`);
  return JSON.parse(readFileSync(file, "utf8"));
}

async function writeBlob(dir: string, { digest }: Descriptor, body: Body): Promise<void> {
  const file = blobFile(dir, digest);
  if (existsSync(file)) return;
  const content = body.open();
  const chunks = content instanceof Uint8Array ? [content] : content;
  await pipeline(Readable.from(chunks), createWriteStream(`${file}.partial`));
  await rename(`${file}.partial`, file);
}

function blobFile(dir: string, digest: Digest): string {
  return join(dir, "blobs", "sha256", parseDigest(digest).slice("sha256:".length));
}
