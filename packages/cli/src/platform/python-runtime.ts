/** The Python runtime as images carry it: the package's sources, and their bytecode if it can be had. */
import { execFile } from "node:child_process";
import { cpSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { bytecodeCommand, type LayerFile } from "@spry/image";
import { findPython } from "@spry/machine";
import { sourceDigest } from "./source-digest.ts";

const sources = path.resolve(import.meta.dirname, "../../../../runtimes/python/spry_runtime");
const directory = "usr/src/app/spry_runtime";
const compileTimeoutMs = 60_000;

export const pythonEntrypoint = ["python3", `/${directory}/__main__.py`];

export function pythonRuntimeDigest(): string {
  return sourceDigest(sources, "**/*.py");
}

/**
 * Files of the runtime with bytecode of that version (`3.12`), which saves each start from compiling;
 * undefined when this machine's Python does not compile them or is not there. `scratch` is a new
 * directory.
 */
export async function compiledPythonRuntime(
  version: string,
  scratch: string,
): Promise<LayerFile[] | undefined> {
  const python = await findPython(version);
  if (!python) return undefined;
  cpSync(sources, scratch, {
    recursive: true,
    filter: (file) => path.basename(file) !== "__pycache__",
  });
  const { args, env } = bytecodeCommand(scratch, `/${directory}`);
  const options = { cwd: scratch, env, timeout: compileTimeoutMs };
  try {
    await promisify(execFile)(python.executable, args, options);
  } catch {
    return undefined;
  }
  return filesOf(scratch, "**/*.{py,pyc}");
}

export function pythonRuntime(): LayerFile[] {
  return filesOf(sources, "**/*.py");
}

function filesOf(dir: string, pattern: string): LayerFile[] {
  return globSync(pattern, { cwd: dir }).map((file) => ({
    path: `${directory}/${file.split(path.sep).join("/")}`,
    content: readFileSync(path.join(dir, file)),
  }));
}
