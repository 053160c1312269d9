import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdir, opendir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { interpreterLabel } from "../interpreters.ts";
import { type LocalImage } from "../sandbox.ts";

/** A runtime that waits without a Function: a copy of an image's runtime, by its content. */
export interface RuntimeCopy {
  /** SHA-256 of its files, its program and its interpreters. */
  digest: string;
  /** The copy's files are below it at the paths that they have in the image. */
  dir: string;
  /** As the image's entrypoint says it, and with the copy's file. */
  entrypoint: readonly string[];
  argv: readonly string[];
  /** Value of the image's label. */
  interpreters: string;
  /** Where a Function's code is in the image; the root directory for a task. */
  functionDir: string;
  /** It takes arguments and ends by itself, as the builder does; else it is a server. */
  isTask: boolean;
}

/** The runtimes have some sixty files of together 2 MB. */
const limits = { files: 1000, entries: 5000, bytes: 32 * 1024 * 1024 };
const programs = ["node", "python3"];
const packageMain = "__main__.py";
/** Of images whose program is a task that can wait. */
const taskLabel = "io.spry.task";

/** Whether an image's program takes arguments, and ends by itself. */
export const isTaskImage = ({ config }: LocalImage): boolean =>
  config.Labels?.[taskLabel] === "true";

/** Whether the platform itself has made the runtime with this digest. */
export type IsShipped = (digest: string) => Promise<boolean>;

/**
 * Copies the runtime of a Function's image to `<into>/<digest>/`. Undefined for an image that is started in another way than
 * `readRuntime` describes, and for a runtime that the platform has not made: it runs outside of any Pod while it waits.
 * What others have copied before is used: the digest says what it is.
 */
export async function copyRuntime(
  image: LocalImage,
  into: string,
  isShipped: IsShipped,
): Promise<RuntimeCopy | undefined> {
  const runtime = await readRuntime(image);
  if (!runtime) return undefined;
  const { digest, entrypoint, interpreters, functionDir, isTask, home, files } = runtime;
  if (!(await isShipped(digest))) return undefined;
  const dir = path.join(into, digest);
  await write(dir, home, files);
  const [program = "", file = ""] = entrypoint;
  const argv = [program, path.join(dir, file)];
  return { digest, dir, entrypoint, argv, interpreters, functionDir, isTask };
}

/** Of the runtime in an image; undefined where it has none. */
export async function runtimeDigest(image: LocalImage): Promise<string | undefined> {
  return (await readRuntime(image))?.digest;
}

/**
 * The runtime of an image that is started as `["node" | "python3", FILE]`, with a directory `function` next to FILE: all files of
 * the directory of FILE; of a Python package (`__main__.py`) all that is below. A task has no such directory.
 */
async function readRuntime(image: LocalImage) {
  const { rootDir, config } = image;
  const isTask = isTaskImage(image);
  const { Entrypoint: entrypoint = [], Cmd: command = [], WorkingDir: functionDir = "" } = config;
  const [program = "", file = "", ...more] = entrypoint;
  const interpreters = config.Labels?.[interpreterLabel] ?? "";
  const isOurs = programs.includes(program) && path.posix.isAbsolute(file) && interpreters !== "";
  if (!isOurs || more.length > 0 || command.length > 0) return undefined;
  const isPackage = path.posix.basename(file) === packageMain;
  const home = path.posix.dirname(file);
  const usualDir = path.posix.join(isPackage ? path.posix.dirname(home) : home, "function");
  if (functionDir !== (isTask ? "" : usualDir)) return undefined;
  const files = await readFiles(path.join(rootDir, home), isPackage);
  if (!files) return undefined;
  const sizes = files.map(([name, { length }]) => [name, length]);
  const about = [entrypoint, interpreters, sizes, ...(isTask ? ["task"] : [])];
  const hash = createHash("sha256").update(JSON.stringify(about));
  for (const [, content] of files) hash.update(content);
  const digest = hash.digest("hex");
  return { digest, entrypoint, interpreters, functionDir: functionDir || "/", isTask, home, files };
}

/** By relative path, in order; undefined for what no runtime has: a link, or more than is allowed, of which nothing is read. */
async function readFiles(dir: string, isDeep: boolean): Promise<[string, Buffer][] | undefined> {
  const found: string[] = [];
  let [bytes, entries] = [0, 0];
  for await (const entry of await opendir(dir, { recursive: isDeep })) {
    if (++entries > limits.entries) return undefined;
    if (entry.isDirectory()) continue;
    if (!entry.isFile() || found.length === limits.files) return undefined;
    const file = path.join(entry.parentPath, entry.name);
    bytes += statSync(file).size;
    if (bytes > limits.bytes) return undefined;
    found.push(file);
  }
  // At once: each piece of a promised file waits for its turn, which delays the new version.
  const files = found.map((file): [string, Buffer] => [
    path.relative(dir, file),
    readFileSync(file),
  ]);
  return files.sort(([one], [other]) => (one < other ? -1 : 1));
}

/** All or nothing; one that is there may be in use. */
async function write(dir: string, home: string, files: readonly [string, Buffer][]): Promise<void> {
  if (existsSync(dir)) return;
  const partial = `${dir}.partial-${randomBytes(4).toString("hex")}`;
  try {
    for (const [name, content] of files) {
      const file = path.join(partial, home, name);
      await mkdir(path.dirname(file), { recursive: true, mode: 0o755 });
      await writeFile(file, content, { mode: 0o644 });
    }
    await rename(partial, dir).catch((error: unknown) => {
      if (!existsSync(dir)) throw error;
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}
