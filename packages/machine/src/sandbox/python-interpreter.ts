import { copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { pythonHook } from "../network/service-files.ts";
import { findPython, type PythonInstallation, pythonVersions } from "./python-installations.ts";

/** An image needs an interpreter that is neither here nor available for download; a later attempt may find it. */
export class MissingInterpreterError extends Error {
  override readonly name = "MissingInterpreterError";
}

/**
 * Writes a directory with this machine's Python of that version: `bin/{python3,python,pip}`, and `uv` if there is one. It is a
 * virtual environment, so that a Function sees the standard library and its own dependencies, and
 * not what else has been installed on this machine. pip takes `pip.conf` in it for its settings. `lack`
 * says why it could not be fetched, if it is not here.
 */
export async function linkPython(
  version: string,
  dir: string,
  { pipConfig, lack }: { pipConfig?: string | undefined; lack?: string | undefined },
): Promise<void> {
  const python = await findPython(version);
  if (!python) throw new MissingInterpreterError(missing(version, lack));
  const bin = path.join(dir, "bin");
  await mkdir(bin, { recursive: true });
  for (const name of ["python3", "python", `python${version}`])
    await symlink(python.executable, path.join(bin, name));
  // Builds take it instead of pip, to the same end.
  if (python.uv) await symlink(python.uv, path.join(bin, "uv"));
  const home = path.dirname(python.executable);
  await writeFile(
    path.join(dir, "pyvenv.cfg"),
    `home = ${home}\ninclude-system-site-packages = false\n`,
  );
  if (pipConfig) await symlink(pipConfig, path.join(dir, "pip.conf"));
  await writeFile(path.join(dir, "pip.py"), pipProgram(python));
  for (const name of ["pip", "pip3"])
    await writeFile(path.join(bin, name), pipCommand, { mode: 0o755 });
  await addServiceNames(path.join(dir, "lib", `python${version}`, "site-packages"));
}

/**
 * Python runs a line of a `.pth` file that begins with `import` at every start (module `site`). It takes its own
 * directory off the path again: a Function's packages come from its image, and what a build of another leaves
 * behind here is not found.
 */
async function addServiceNames(packages: string): Promise<void> {
  await mkdir(packages, { recursive: true });
  await copyFile(pythonHook, path.join(packages, "_spry_services.py"));
  const line = [
    'import os, sys; os.environ.get("SPRY_SERVICES") and __import__("_spry_services")',
    'sys.path[:] = [each for each in sys.path if not os.path.exists(os.path.join(each, "_spry_services.pth"))]',
  ].join("; ");
  await writeFile(path.join(packages, "_spry_services.pth"), `${line}\n`);
}

/** A shell's line, because a path with blanks cannot stand after `#!`. */
const pipCommand = `#!/bin/sh
bin=$(dirname "$0")
exec "$bin/python3" -I "$bin/../pip.py" "$@"
`;

/** The installation's own pip, run with the virtual environment's interpreter. */
function pipProgram({ executable, pip }: PythonInstallation): string {
  const advice = `pip is missing for ${executable}: install it, for example with your system's package python3-pip, or with ${executable} -m ensurepip`;
  return `import sys
sys.path.append(${JSON.stringify(pip ?? "")})
try:
    from pip._internal.cli.main import main
except ImportError:
    sys.exit(${JSON.stringify(advice)})
sys.exit(main())
`;
}

function missing(version: string, lack: string | undefined): string {
  const versions = pythonVersions();
  const here = versions.length > 0 ? `it has ${versions.join(", ")}` : "it has none";
  return (
    `Python ${version} is not on this machine (${[here, lack].filter(Boolean).join("; ")}): install it as python${version} ` +
    `(for example with uv python install ${version}, pyenv install ${version} or the system's packages), ` +
    `or choose a runtime whose version is here; it is looked for again`
  );
}
