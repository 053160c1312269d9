/** The runtime of a Function as a program of this machine: the same files that are in images. */
import { existsSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Runtime } from "@spry/function";
import { type LayerFile } from "@spry/image";
import { Interpreters } from "@spry/machine";
import { NodeRuntime } from "../platform/node-runtime.ts";
import { npmCli } from "../platform/npm-cli.ts";
import { pythonRuntime, pythonRuntimeDigest } from "../platform/python-runtime.ts";
import { createLogger } from "../logger.ts";
import { cacheDir } from "./places.ts";

/** An interpreter, and what it is started with. */
export interface RuntimeProgram {
  /** Directory with the interpreter, and npm or pip. */
  bin: string;
  /** The command and its first arguments; more of the interpreter's go between `command` and `script`. */
  command: string;
  script: string;
}

/**
 * Makes the program ready; what takes time is kept in the cache folder. `scratch` is a directory of this process.
 * Throws when the interpreter is neither on this machine nor can be fetched.
 */
export async function runtimeProgram(
  runtime: Runtime,
  scratch: string,
  report: (line: string) => void,
): Promise<RuntimeProgram> {
  const { interpreter, language } = runtime;
  const isOwn = interpreter === Interpreters.own;
  // Directories that are made again by each process must not be shared with another one.
  const isShared = language === "nodejs" && !isOwn;
  const interpreters = new Interpreters({
    dataDir: isShared ? cacheDir() : scratch,
    npmCli: npmCli(),
    log: createLogger({ name: "dev", file: path.join(scratch, "dev.log") }),
  });
  const bin = await interpreters.ensure(interpreter, report);
  if (language === "python") {
    const dir = await kept(`python-${pythonRuntimeDigest()}`, () =>
      Promise.resolve(pythonRuntime()),
    );
    const command = path.join(bin, "python3");
    return { bin, command, script: path.join(dir, "spry_runtime", "__main__.py") };
  }
  const node = isOwn ? process.execPath : path.join(bin, "node");
  const program = new NodeRuntime();
  const version = isOwn ? process.version : path.basename(path.dirname(bin));
  const dir = await kept(`nodejs-${program.digest}-${version}`, async () => {
    try {
      return await program.compiledFiles(node).catch(() => program.files());
    } finally {
      await (await import("esbuild")).stop();
    }
  });
  return { bin, command: node, script: path.join(dir, "server.cjs") };
}

/** The directory with a runtime's files, written once. */
async function kept(name: string, files: () => Promise<LayerFile[]>): Promise<string> {
  const dir = path.join(cacheDir(), "runtimes", name);
  const inside = path.join(dir, "usr/src/app");
  if (existsSync(dir)) {
    utimesSync(dir, new Date(), new Date());
    return inside;
  }
  const partial = `${dir}.${process.pid}`;
  for (const file of await files()) {
    if (!("content" in file)) continue;
    const target = path.join(partial, file.path);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, file.content);
  }
  try {
    renameSync(partial, dir);
  } catch (error) {
    // Another process was faster; its files are the same.
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(dir)) throw error;
  }
  return inside;
}
