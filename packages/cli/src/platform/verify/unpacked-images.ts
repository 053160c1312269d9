/** Images as they were unpacked on this machine, compared with the layers that the registry has of them. */
import {
  closeSync,
  createReadStream,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  statSync,
} from "node:fs";
import path from "node:path";
import { entriesBelow, type ImageManifest, unpackLayer } from "@spry/image";
import { type Finding } from "./finding.ts";

const pieceBytes = 1024 * 1024;
/** As the registry takes them. */
const maxManifest = 4 * 1024 * 1024;

/** Changes nothing but a scratch directory below `scratch`. Images of other registries are counted and not compared. */
export async function* unpackedImages(
  images: string,
  registry: string,
  scratch: string,
): AsyncGenerator<Finding> {
  const names = existsSync(images)
    ? readdirSync(images).filter((name) => /^[0-9a-f]{64}$/.test(name))
    : [];
  let compared = 0;
  let damaged = 0;
  for (const name of names) {
    const manifest = manifestIn(registry, name);
    if (!manifest?.layers.every(({ digest }) => existsSync(blobFile(registry, digest)))) continue;
    compared++;
    const rootDir = path.join(images, name, "rootfs");
    const difference = await differenceOf(rootDir, registry, manifest, scratch);
    if (difference === undefined) continue;
    damaged++;
    yield {
      what: `unpacked image sha256:${name}`,
      problem: difference,
      wayOut: `stop the platform and remove ${path.join(images, name)} and the directories base-* next to it: the image is unpacked again when it is needed`,
    };
  }
  if (damaged > 0) return;
  const others = names.length - compared;
  yield {
    what: `unpacked images: ${compared} compared${others > 0 ? `, ${others} of other registries` : ""}`,
  };
}

async function differenceOf(
  rootDir: string,
  registry: string,
  { layers }: ImageManifest,
  scratch: string,
): Promise<string | undefined> {
  const expected = mkdtempSync(path.join(scratch, "verify-"));
  try {
    for (const { digest } of layers) {
      await unpackLayer(createReadStream(blobFile(registry, digest)), expected);
    }
    return await firstDifference(expected, rootDir);
  } catch (error) {
    return `its layers cannot be read: ${(error as Error).message}`;
  } finally {
    rmSync(expected, { recursive: true, force: true });
  }
}

/** The first file that the image has and the directory lacks, or has with other content. */
async function firstDifference(expected: string, rootDir: string): Promise<string | undefined> {
  for (const entry of entriesBelow(expected)) {
    const wanted = path.join(entry.parentPath, entry.name);
    const name = path.relative(expected, wanted);
    const there = path.join(rootDir, name);
    const found = lstatSync(there, { throwIfNoEntry: false });
    if (!found) return `/${name} is missing`;
    const isSame = entry.isSymbolicLink()
      ? found.isSymbolicLink() && readlinkSync(there) === readlinkSync(wanted)
      : entry.isFile()
        ? found.isFile() && haveSameContent(there, wanted)
        : found.isDirectory();
    if (!isSame) return `/${name} differs from the image`;
  }
  return undefined;
}

/** In pieces: a file of an image may be larger than the memory. */
function haveSameContent(one: string, other: string): boolean {
  const files = [one, other].map((file) => openSync(file, "r"));
  const pieces = files.map(() => Buffer.alloc(pieceBytes));
  try {
    for (;;) {
      const [first = 0, second = 0] = files.map((file, at) =>
        readSync(file, pieces[at] ?? Buffer.alloc(0)),
      );
      if (first !== second || !pieces[0]?.equals(pieces[1] ?? Buffer.alloc(0))) return false;
      if (first === 0) return true;
    }
  } finally {
    for (const file of files) closeSync(file);
  }
}

function manifestIn(registry: string, hex: string): ImageManifest | undefined {
  try {
    const file = blobFile(registry, `sha256:${hex}`);
    if (statSync(file).size > maxManifest) return undefined;
    const content = readFileSync(file, "utf8");
    const manifest = JSON.parse(content) as Partial<ImageManifest>;
    return Array.isArray(manifest.layers) ? (manifest as ImageManifest) : undefined;
  } catch {
    return undefined;
  }
}

function blobFile(registry: string, digest: string): string {
  const [algorithm = "", hex = ""] = digest.split(":");
  return path.join(registry, "blobs", algorithm, hex.slice(0, 2), hex);
}
