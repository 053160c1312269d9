import { existsSync, realpathSync } from "node:fs";
import {
  chmod,
  copyFile,
  link,
  mkdir,
  readdir,
  readlink,
  symlink,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { librariesLoadedLater, sharedLibrariesOfAll } from "@spry/image";

/**
 * A root file system in the making: everybody may read it, whatever this program's umask is. It lacks shared libraries until
 * `complete`, which looks for those of all files at once.
 */
export class RootTree {
  readonly #dir: string;
  readonly #copied = new Set<string>();
  /** Files of the host whose libraries are wanted, and whether they are programs. */
  readonly #linked = new Map<string, { isProgram: boolean }>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  async directory(name: string): Promise<string> {
    let at = this.#dir;
    for (const part of ["", ...name.split("/").filter(Boolean)]) {
      at = path.join(at, part);
      if (existsSync(at)) continue;
      await mkdir(at, { recursive: true });
      await chmod(at, 0o755);
    }
    return at;
  }

  async file(name: string, content: string, mode = 0o644): Promise<void> {
    const file = path.join(await this.directory(path.dirname(name)), path.basename(name));
    await writeFile(file, content);
    await chmod(file, mode);
  }

  async link(name: string, target: string): Promise<void> {
    await symlink(target, path.join(await this.directory(path.dirname(name)), path.basename(name)));
  }

  async copy(source: string, name: string): Promise<void> {
    if (this.#copied.has(name)) return;
    this.#copied.add(name);
    const file = path.join(await this.directory(path.dirname(name)), path.basename(name));
    const real = realpathSync(source);
    // The same file as the host's: its pages are in memory once, for the platform and all containers.
    await link(real, file).catch(() => copyFile(real, file));
  }

  /** A directory of the host at its own path, without what `leaveOut` names. */
  async directoryOfHost(source: string, leaveOut: ReadonlySet<string> = new Set()): Promise<void> {
    const entries = await readdir(source, { withFileTypes: true });
    const dir = await this.directory(source);
    for (const entry of entries) {
      const file = path.join(source, entry.name);
      if (leaveOut.has(entry.name)) continue;
      if (entry.isDirectory()) await this.directoryOfHost(file, leaveOut);
      else if (entry.isSymbolicLink())
        await symlink(await readlink(file), path.join(dir, entry.name)).catch(ignoreExisting);
      else if (entry.isFile()) await this.copy(file, file);
    }
  }

  /** The shared libraries of a file, at the paths where it looks for them. */
  libraries(source: string): void {
    if (!this.#linked.has(source)) this.#linked.set(source, { isProgram: false });
  }

  /** A program with every shared library that it asks for, at the paths it asks for them. */
  async program(source: string, name: string): Promise<void> {
    await this.copy(source, name);
    this.#linked.set(source, { isProgram: true });
  }

  /** Adds the shared libraries of everything in it. */
  async complete(): Promise<void> {
    const libraries = await sharedLibrariesOfAll([...this.#linked.keys()]);
    for (const [source, { isProgram }] of this.#linked) {
      const linked = libraries.get(source) ?? [];
      const later = isProgram ? librariesLoadedLater(linked) : [];
      for (const library of [...linked, ...later]) await this.copy(library, library);
    }
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}
