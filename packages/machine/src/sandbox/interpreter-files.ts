/** What an interpreter consists of on this machine, for containers that see nothing else of it. */
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import path from "node:path";
import { sharedLibrariesOf } from "@spry/image";
import { findPython } from "./python-installations.ts";

/** `bin` is the directory as `Interpreters` has made it. */
export async function interpreterFiles(name: string, bin: string): Promise<string[]> {
  const dir = path.dirname(bin);
  const [, version] = /^python@(.+)$/.exec(name) ?? [];
  if (version === undefined) {
    // In the directory is a link to it.
    const program = path.resolve(bin, readlinkSync(path.join(bin, "node")));
    return [dir, ...(await programFiles(program))];
  }
  const python = await findPython(version);
  if (!python) return [dir];
  const { executable, prefix, pip, uv } = python;
  const library = path.join(prefix, "lib", `python${version}`);
  const more = [pip, uv].filter((file) => file !== undefined);
  return [dir, library, ...(await programFiles(executable)), ...more];
}

/** A program, what it is a link to, and the libraries it loads. */
async function programFiles(program: string): Promise<string[]> {
  const libraries = await sharedLibrariesOf(program).catch(() => []);
  return [program, ...libraries];
}

/** The settings of npm and pip, and the files of certificates that they name. */
export function settingsFiles(files: readonly (string | undefined)[]): string[] {
  return files.flatMap((file) => {
    if (file === undefined || !existsSync(file)) return [];
    const certificates = /^(?:cafile|cert)\s*=\s*(\/.*)$/m.exec(readFileSync(file, "utf8"))?.[1];
    return certificates === undefined ? [file] : [file, certificates.trim()];
  });
}
