import { createHash } from "node:crypto";
import { createWriteStream, existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type AssembledImage, configBlob } from "./assemble-image.ts";
import { type Digest, digestFrom } from "./digest.ts";
import { type Layer } from "./layer.ts";
import { type Descriptor, type ImageIndex, mediaTypes } from "./manifest.ts";

/** The name of an image in the index of a layout, as containerd takes it over. */
const imageNameAnnotation = "io.containerd.image.name";
const refNameAnnotation = "org.opencontainers.image.ref.name";

/**
 * Adds an image to a directory in the OCI image layout 1.0 (made when it is not there), under a full
 * name such as `registry.example/spry/controller:1`. An image of that name that is there is replaced
 * in the index; its blobs stay. Every layer must have its content. One writer at a time.
 */
export async function writeToLayout(
  dir: string,
  name: string,
  image: AssembledImage,
): Promise<void> {
  const blobs = path.join(dir, "blobs", "sha256");
  await mkdir(blobs, { recursive: true });
  await writeFile(path.join(dir, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  for (const layer of [...image.layers, configBlob(image)]) await writeBlob(blobs, layer);
  await writeFile(path.join(blobs, hexOf(image.digest)), image.bytes);
  const entry: Descriptor = {
    mediaType: image.mediaType,
    digest: image.digest,
    size: image.bytes.length,
    annotations: { [imageNameAnnotation]: name, [refNameAnnotation]: tagOf(name) },
  };
  const index = await readIndex(dir);
  const others = index.manifests.filter(
    ({ annotations }) => annotations?.[imageNameAnnotation] !== name,
  );
  const manifests = [...others, entry].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  await writeFile(path.join(dir, "index.json"), JSON.stringify({ ...index, manifests }));
}

async function readIndex(dir: string): Promise<ImageIndex> {
  const file = path.join(dir, "index.json");
  if (!existsSync(file)) return { schemaVersion: 2, mediaType: mediaTypes.index, manifests: [] };
  return JSON.parse(await readFile(file, "utf8")) as ImageIndex;
}

async function writeBlob(blobs: string, { descriptor, body }: Layer): Promise<void> {
  const file = path.join(blobs, hexOf(descriptor.digest));
  if (existsSync(file)) return;
  if (!body) throw new Error(`writing an image layout: layer ${descriptor.digest} has no content`);
  const content = body.open();
  const source = content instanceof Uint8Array ? Readable.from([content]) : Readable.from(content);
  const hash = createHash("sha256");
  const partial = `${file}.partial`;
  try {
    await pipeline(
      source,
      async function* (chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          hash.update(chunk);
          yield chunk;
        }
      },
      createWriteStream(partial),
    );
    const written = digestFrom(hash);
    if (written !== descriptor.digest) {
      throw new Error(`writing an image layout: ${descriptor.digest} turned out as ${written}`);
    }
    await rename(partial, file);
  } finally {
    await rm(partial, { force: true });
  }
}

const hexOf = (digest: Digest): string => digest.slice(digest.indexOf(":") + 1);
const nameOf = ({ annotations }: Descriptor): string => annotations?.[imageNameAnnotation] ?? "";
const tagOf = (name: string): string => name.slice(name.lastIndexOf(":") + 1);
