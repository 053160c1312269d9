import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { type Owner } from "./unpack-layer.ts";
import { type EarlierVersion } from "./placed-files.ts";

/** The files of an earlier version of an image, for those that its next version has as well. */
export class EarlierFiles {
  readonly #root: string;
  readonly #content: EarlierVersion["content"];
  #buffer = Buffer.alloc(64 * 1024);

  constructor({ dir, content }: EarlierVersion) {
    this.#root = dir;
    this.#content = content;
  }

  /**
   * Where there is a plain file at this path with the same content and mode, and the same owner if one is given; undefined
   * where there is none. `identity` as in `PlacedFile`.
   */
  find(
    path: string,
    content: Buffer,
    {
      mode,
      identity,
      owner,
    }: { mode: number; identity?: string | undefined; owner?: Owner | undefined },
  ): string | undefined {
    const file = join(this.#root, path);
    const known = this.#content?.get(path)?.identity;
    if (known !== undefined && identity !== undefined) return known === identity ? file : undefined;
    // Windows has neither.
    const { O_NOFOLLOW, O_NONBLOCK } = constants as Partial<typeof constants>;
    let descriptor: number;
    try {
      descriptor = openSync(file, constants.O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
    } catch {
      return undefined;
    }
    try {
      const stats = fstatSync(descriptor);
      const isAlike = stats.isFile() && stats.size === content.length;
      if (!isAlike || (stats.mode & 0o7777) !== mode) return undefined;
      if (owner && (stats.uid !== owner.uid || stats.gid !== owner.gid)) return undefined;
      return this.#has(descriptor, content) ? file : undefined;
    } finally {
      closeSync(descriptor);
    }
  }

  #has(descriptor: number, content: Buffer): boolean {
    if (this.#buffer.length < content.length) this.#buffer = Buffer.alloc(content.length);
    let size = 0;
    while (size < content.length) {
      const read = readSync(descriptor, this.#buffer, size, content.length - size, size);
      if (read === 0) return false;
      size += read;
    }
    return this.#buffer.subarray(0, size).equals(content);
  }
}
