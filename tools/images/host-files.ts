import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { type LayerFile, librariesLoadedLater, sharedLibrariesOf } from "@spry/image";

const programDirs = ["/usr/bin", "/bin"];

/** A program of this machine by its name; undefined when there is none. */
export function onHost(program: string): string | undefined {
  return programDirs.map((dir) => path.join(dir, program)).find(existsSync);
}

/** Files of this machine that become a layer. What `below` has already is left out. */
export class HostFiles {
  readonly #files = new Map<string, LayerFile>();
  readonly #below: readonly HostFiles[];

  constructor(...below: HostFiles[]) {
    this.#below = below;
  }

  list(): LayerFile[] {
    return [...this.#files.values()];
  }

  has(name: string): boolean {
    const key = relative(name);
    return this.#files.has(key) || this.#below.some((one) => one.has(key));
  }

  text(name: string, content: string | Uint8Array, mode = 0o644): void {
    this.#files.set(relative(name), { path: relative(name), content, mode });
  }

  link(name: string, target: string): void {
    this.#files.set(relative(name), { path: relative(name), link: target });
  }

  /** A file's content, whatever links lead to it. */
  copy(source: string, name: string): void {
    if (this.has(name)) return;
    const file = realpathSync(source);
    this.#files.set(relative(name), { path: relative(name), file, mode: statSync(file).mode });
  }

  /** A program and every shared library that it asks for, at the paths at which it looks for them. */
  async program(source: string, name: string): Promise<void> {
    this.copy(source, name);
    await this.libraries(source);
  }

  async libraries(program: string): Promise<void> {
    const libraries = await sharedLibrariesOf(program);
    for (const library of libraries) this.copy(library, library);
    for (const library of librariesLoadedLater(libraries)) this.copy(library, library);
  }

  /** A directory, at a path of its own or another; entries with one of the names are left out wherever they are. */
  directory(source: string, name: string, leftOut: ReadonlySet<string> = new Set()): void {
    for (const entry of readdirSync(source, { withFileTypes: true })) {
      if (leftOut.has(entry.name)) continue;
      const from = path.join(source, entry.name);
      const to = path.posix.join(name, entry.name);
      if (entry.isDirectory()) this.directory(from, to, leftOut);
      else if (entry.isSymbolicLink()) this.link(to, readlinkSync(from));
      else if (lstatSync(from).isFile()) this.copy(from, to);
    }
  }
}

const relative = (name: string): string => name.replace(/^\/+/, "");
