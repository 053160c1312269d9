import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
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
  /** Where a Function's code is in the image. */
  functionDir: string;
}

/** The runtimes have some sixty files of together 2 MB. */
const limits = { files: 1000, bytes: 32 * 1024 * 1024 };
const programs = ["node", "python3"];
const packageMain = "__main__.py";

/**
 * Copies the runtime of a Function's image to `<into>/<digest>/`. Undefined for an image that is started in another way,
 * `["node" | "python3", FILE]` beside a directory `function`. The runtime is all files of the directory of FILE; of a Python package
 * (`__main__.py`) all that is below. What others have copied before is used: the digest says what it is.
 */
export async function copyRuntime(
  { rootDir, config }: LocalImage,
  into: string,
): Promise<RuntimeCopy | undefined> {
  const { Entrypoint: entrypoint = [], Cmd: command = [], WorkingDir: functionDir = "" } = config;
  const [program = "", file = "", ...more] = entrypoint;
  const interpreters = config.Labels?.[interpreterLabel] ?? "";
  const isOurs = programs.includes(program) && path.posix.isAbsolute(file) && interpreters !== "";
  if (!isOurs || more.length > 0 || command.length > 0) return undefined;
  const isPackage = path.posix.basename(file) === packageMain;
  const home = path.posix.dirname(file);
  if (functionDir !== path.posix.join(isPackage ? path.posix.dirname(home) : home, "function"))
    return undefined;
  const files = await readFiles(path.join(rootDir, home), isPackage);
  if (!files) return undefined;
  const hash = createHash("sha256").update(JSON.stringify([entrypoint, interpreters]));
  for (const [name, content] of files) hash.update(`\n${name} ${content.length}\n`).update(content);
  const digest = hash.digest("hex");
  const dir = path.join(into, digest);
  await write(dir, home, files);
  const argv = [program, path.join(dir, file)];
  return { digest, dir, entrypoint, argv, interpreters, functionDir };
}

/** By relative path, in order; undefined for what no runtime has: a link, or more than is allowed. */
async function readFiles(dir: string, isDeep: boolean): Promise<[string, Buffer][] | undefined> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: isDeep }).catch(() => []);
  const files: [string, Buffer][] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (entry.isDirectory()) continue;
    if (!entry.isFile() || files.length === limits.files) return undefined;
    const file = path.join(entry.parentPath, entry.name);
    const content = await readFile(file);
    bytes += content.length;
    if (bytes > limits.bytes) return undefined;
    files.push([path.relative(dir, file), content]);
  }
  return files.sort(([a], [b]) => (a < b ? -1 : 1));
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
