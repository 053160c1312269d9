/** Images as they were unpacked on this machine, compared with the layers that the registry has of them. */
import {
  createReadStream,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from "node:fs";
import path from "node:path";
import { entriesBelow, type ImageManifest, unpackLayer } from "@spry/image";
import { type Finding } from "./finding.ts";

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
    return firstDifference(expected, rootDir);
  } catch (error) {
    return `its layers cannot be read: ${(error as Error).message}`;
  } finally {
    rmSync(expected, { recursive: true, force: true });
  }
}

/** The first file that the image has and the directory lacks, or has with other content. */
function firstDifference(expected: string, rootDir: string): string | undefined {
  for (const entry of entriesBelow(expected)) {
    const wanted = path.join(entry.parentPath, entry.name);
    const name = path.relative(expected, wanted);
    const there = path.join(rootDir, name);
    const found = lstatSync(there, { throwIfNoEntry: false });
    if (!found) return `/${name} is missing`;
    const isSame = entry.isSymbolicLink()
      ? found.isSymbolicLink() && readlinkSync(there) === readlinkSync(wanted)
      : entry.isFile()
        ? found.isFile() && readFileSync(there).equals(readFileSync(wanted))
        : found.isDirectory();
    if (!isSame) return `/${name} differs from the image`;
  }
  return undefined;
}

function manifestIn(registry: string, hex: string): ImageManifest | undefined {
  try {
    const content = readFileSync(blobFile(registry, `sha256:${hex}`), "utf8");
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
