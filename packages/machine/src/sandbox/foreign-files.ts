/** Files of images and volumes that the platform itself reads, outside of any sandbox: others decide what they are, and how large. */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
} from "node:fs";
import path from "node:path";
import { pathOnly } from "./open-beneath.ts";

/** The most that is read of one file, in bytes: accounts and settings of images have a few KiB. */
export const maxForeignBytes = 1024 * 1024;
/** As many links as the kernel follows on the way to a file. */
const maxLinks = 40;
/** As long as a path can be (PATH_MAX of Linux). */
const maxPath = 4096;

/**
 * The lines of a file of an image, one by one. `layers` make the image's root directory, topmost first, as an overlay would; links are
 * followed as they are in a container, and never out of the image. Nothing where the image has no such file. Throws for what is not a
 * regular file, for a link that leads to nothing in the image, and for more than 1 MiB; `file` is named as the container sees it.
 */
export function* linesOfImage(layers: readonly string[], file: string): Generator<string> {
  const found = placeInLayers(layers, file);
  if (found === undefined) return;
  const descriptor = openRegular(found, `${file} of the image`);
  try {
    yield* linesOf(readAtMost(descriptor, maxForeignBytes, `${file} of the image`));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Opens a regular file for reading without following a link in its place. A FIFO is not waited for, and a device is never opened.
 * Throws an error that begins with `name` for everything else; the system's error for what does not exist.
 */
export function openRegular(file: string, name: string): number {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
  if (process.platform !== "linux") {
    assertRegular(lstatSync(file), name);
    return openSync(file, (O_RDONLY ?? 0) | O_NOFOLLOW | O_NONBLOCK);
  }
  const place = openSync(file, pathOnly | O_NOFOLLOW);
  try {
    assertRegular(fstatSync(place), name);
    return openSync(`/proc/self/fd/${place}`, (O_RDONLY ?? 0) | O_NONBLOCK);
  } finally {
    closeSync(place);
  }
}

function assertRegular(stats: Stats, name: string): void {
  if (stats.isFile()) return;
  const kinds = { isSymbolicLink: "a link", isDirectory: "a directory", isFIFO: "a FIFO" } as const;
  const kind = (Object.keys(kinds) as (keyof typeof kinds)[]).find((each) => stats[each]());
  throw new Error(`${name} is ${kind ? kinds[kind] : "a device or socket"}, not a regular file`);
}

/** Throws an error that names the file and the limit where there is more. */
function readAtMost(descriptor: number, limit: number, name: string): Buffer {
  const { size } = fstatSync(descriptor);
  const content = Buffer.alloc(Math.min(size, limit) + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < content.length; length += read)
    read = readSync(descriptor, content, length, content.length - length, length);
  if (length <= limit && size <= limit) return content.subarray(0, length);
  throw new Error(
    `${name} has ${Math.max(size, length)} bytes: the limit for a file that the node reads is ${limit} bytes (1 MiB)`,
  );
}

/** One at a time: a file of nothing but line ends would be a million texts. */
function* linesOf(content: Buffer): Generator<string> {
  for (let at = 0; at < content.length;) {
    const end = content.indexOf(0x0a, at);
    const next = end < 0 ? content.length : end;
    yield content.toString("utf8", at, next);
    at = next + 1;
  }
}

/**
 * Where a file of an image is on this machine; undefined where it has none. Throws for a link that leads to nothing in the image, and
 * for too many of them.
 */
function placeInLayers(layers: readonly string[], file: string): string | undefined {
  const rest = file.split("/");
  // The directories that are one in the container, for each step down.
  const way: string[][] = [[...layers]];
  let links = 0;
  for (let part = rest.shift(); part !== undefined; part = rest.shift()) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      if (way.length > 1) way.pop();
      continue;
    }
    const here = (way.at(-1) ?? []).flatMap((dir) => {
      const place = path.join(dir, part);
      const stats = lstatSync(place, { throwIfNoEntry: false });
      return stats ? [{ place, stats }] : [];
    });
    const [top] = here;
    if (!top) {
      if (links === 0) return undefined;
      throw new Error(`${file} of the image is a link to a file that the image does not have`);
    }
    if (top.stats.isSymbolicLink()) {
      const target = readlinkSync(top.place);
      if (++links > maxLinks || rest.join("/").length + target.length > maxPath)
        throw new Error(`${file} of the image has too many links on its way`);
      if (target.startsWith("/")) way.splice(1);
      rest.unshift(...target.split("/"));
      continue;
    }
    if (rest.every((each) => each === "" || each === ".") && !top.stats.isDirectory())
      return top.place;
    if (!top.stats.isDirectory()) return undefined;
    // What is not a directory hides what is below it.
    const other = here.findIndex(({ stats }) => !stats.isDirectory());
    way.push(here.slice(0, other < 0 ? undefined : other).map(({ place }) => place));
  }
  return way.at(-1)?.[0];
}
