import { createHash, hash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { decompress } from "./decompress.ts";
import { type Digest, digestFrom } from "./digest.ts";
import { EarlierFiles } from "./earlier-files.ts";
import { ImageTree } from "./image-tree.ts";
import { type EarlierVersion, type PlacedFiles } from "./placed-files.ts";
import { type TarEntry, TarReader, type TarSink } from "./tar-reader.ts";

/** What a whole image may come to; defaults in parentheses. */
export interface UnpackLimits {
  /** Bytes after decompression (8 GiB). */
  size?: number;
  /** Files, directories and links (1,000,000), also directories that only paths go through. */
  entries?: number;
}

/** The largest total length of the names in an image, in bytes: unpacking holds them in memory. */
const maxNameBytes = 128 * 1024 * 1024;
/** So long an image is unpacked before others have their turn. */
const turnMs = 20;

/** What has been unpacked, counted over all layers of an image. */
export interface UnpackTotals {
  size: number;
  entries: number;
  names?: number;
}

/** Larger files are written while they arrive. */
const maxSharedBytes = 1024 * 1024;
const whiteoutPrefix = ".wh.";
const opaqueWhiteout = ".wh..wh..opq";

/**
 * Unpacks a layer over what earlier layers left in `dir` (OCI image specification, "Applying
 * Changesets"). Nothing is written outside of it, whatever the archive says. Modes always let the owner in; devices, pipes
 * and the set-user-ID and set-group-ID bits are left out.
 */
export async function unpackLayer(
  source: AsyncIterable<Uint8Array>,
  dir: string,
  options: {
    diffId?: Digest;
    limits?: UnpackLimits;
    totals?: UnpackTotals;
    /**
     * Keeps owners, where this process may, and who else may write: for containers that have a copy of the files. Default
     * false: everything belongs to this process's user, and modes are reduced to 0755.
     */
    keepsOwners?: boolean | undefined;
    /** Of its files, those that have not changed are shared, which is quicker than writing them. */
    earlier?: EarlierVersion | undefined;
    /** Takes what the layer brings. */
    placed?: PlacedFiles | undefined;
  } = {},
): Promise<void> {
  const totals = options.totals ?? { size: 0, entries: 0 };
  const sizeLimit = options.limits?.size ?? 8 * 1024 ** 3;
  const unpacker = new LayerUnpacker(
    dir,
    totals,
    options.limits?.entries ?? 1_000_000,
    options.earlier && new EarlierFiles(options.earlier),
    options.placed,
    options.keepsOwners ?? false,
  );
  const reader = new TarReader(unpacker);
  const whole = createHash("sha256");
  let since = performance.now();
  const isDue = () => performance.now() - since > turnMs;
  try {
    for await (const chunk of decompress(source, sizeLimit)) {
      totals.size += chunk.length;
      if (totals.size > sizeLimit) throw new Error(`more than ${sizeLimit} bytes`);
      if (options.diffId) whole.update(chunk);
      for (let rest: Uint8Array = chunk; rest.length > 0;) {
        rest = reader.push(rest, isDue);
        if (!isDue()) continue;
        await turn();
        since = performance.now();
      }
    }
    reader.finish();
  } finally {
    unpacker.close();
    await unpacker.removeReplaced();
  }
  if (options.diffId && digestFrom(whole) !== options.diffId)
    throw new Error(`the content is not ${options.diffId}, which the configuration names`);
}

interface SmallFile {
  /** Below the root directory. */
  path: string;
  /** On disk. */
  file: string;
  mode: number;
  owner: Owner | undefined;
  chunks: Buffer[];
}

export interface Owner {
  uid: number;
  gid: number;
}

class LayerUnpacker implements TarSink {
  readonly #tree: ImageTree;
  readonly #totals: UnpackTotals;
  readonly #entryLimit: number;
  /** Paths of this layer: whiteouts hide what is below them, not what came with them. */
  readonly #made = new Set<string>();
  #entry: TarEntry | undefined;
  #descriptor: number | undefined;
  readonly #earlier: EarlierFiles | undefined;
  readonly #placed: PlacedFiles | undefined;
  readonly #keepsOwners: boolean;
  /** A file that is placed when its content is known. */
  #small: SmallFile | undefined;

  constructor(
    dir: string,
    totals: UnpackTotals,
    entryLimit: number,
    earlier: EarlierFiles | undefined,
    placed: PlacedFiles | undefined,
    keepsOwners: boolean,
  ) {
    this.#keepsOwners = keepsOwners;
    this.#earlier = earlier;
    this.#placed = placed;
    this.#tree = new ImageTree(dir, () => this.#count());
    this.#totals = totals;
    this.#entryLimit = entryLimit;
  }

  begin(entry: TarEntry): void {
    this.#entry = entry;
    this.#count();
    this.#totals.names = (this.#totals.names ?? 0) + entry.path.length;
    if (this.#totals.names > maxNameBytes)
      throw new Error(`more than ${maxNameBytes} bytes of names`);
    this.#explained(() => this.#place(entry));
  }

  #count(): void {
    if (++this.#totals.entries > this.#entryLimit)
      throw new Error(`more than ${this.#entryLimit} entries`);
  }

  data(chunk: Uint8Array): void {
    // The chunk is its sender's.
    this.#small?.chunks.push(Buffer.from(chunk));
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    this.#explained(() => {
      for (let at = 0; at < chunk.length;) at += writeSync(descriptor, chunk, at);
    });
  }

  end(): void {
    const small = this.#small;
    this.#small = undefined;
    if (small) this.#explained(() => this.#placeSmall(small));
    this.close();
  }

  /** What the layer has replaced may take a while to be removed. */
  async removeReplaced(): Promise<void> {
    await this.#tree.close();
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #place(entry: TarEntry): void {
    const { parent, name, file } = this.#tree.locate(entry.path);
    if (name === "") {
      if (entry.type === "directory") return;
      throw new Error("the root must be a directory");
    }
    const placed = this.#placed;
    if (name.startsWith(whiteoutPrefix)) {
      if (placed) placed.isWhole = false;
      return this.#hide(parent, name);
    }
    this.#remember(parent, name);
    const mode = (entry.mode & (this.#keepsOwners ? 0o777 : 0o755)) | 0o600;
    const owner = this.#keepsOwners ? { uid: entry.uid, gid: entry.gid } : undefined;
    switch (entry.type) {
      case "directory":
        this.#placeDirectory(file, mode | 0o700, owner);
        // As `/tmp` is: whichever user a container runs as, it may write there.
        if ((entry.mode & 0o1777) === 0o1777) chmodSync(file, 0o1777);
        return;
      case "file":
        placed?.add(pathOf(parent, name), { size: entry.size });
        if ((this.#earlier ?? placed) && entry.size <= maxSharedBytes)
          this.#small = { path: pathOf(parent, name), file, mode, owner, chunks: [] };
        else this.#placeFile(file, mode, owner);
        return;
      case "symlink":
        this.#remove(file);
        return symlinkSync(this.#tree.confine(entry.link, parent), file);
      case "hardlink":
        if (placed) placed.isWhole = false;
        return this.#placeHardLink(entry.link, parent, file);
      case "other":
    }
  }

  #placeDirectory(file: string, mode: number, owner: Owner | undefined): void {
    const found = lstatSync(file, { throwIfNoEntry: false });
    const isThere = found?.isDirectory() === true;
    if (isThere && !owner) return;
    if (found && !isThere) this.#remove(file);
    if (!isThere) mkdirSync(file, { mode });
    // A later layer may give a directory to another user.
    if (owner && (isThere || !isRoot(owner))) give(() => lchownSync(file, owner.uid, owner.gid));
    if (owner && (isThere || othersWrite(mode))) chmodSync(file, mode);
  }

  #placeFile(file: string, mode: number, owner: Owner | undefined): void {
    const { O_WRONLY, O_CREAT, O_EXCL } = constants;
    const flags = O_WRONLY | O_CREAT | O_EXCL | (constants.O_NOFOLLOW ?? 0);
    try {
      this.#descriptor = openSync(file, flags, mode);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      this.#remove(file);
      this.#descriptor = openSync(file, flags, mode);
    }
    const descriptor = this.#descriptor;
    if (owner && !isRoot(owner)) give(() => fchownSync(descriptor, owner.uid, owner.gid));
    // Against the process's umask.
    if (owner && othersWrite(mode)) fchmodSync(descriptor, mode);
  }

  #placeSmall({ path, file, mode, owner, chunks }: SmallFile): void {
    const [only] = chunks;
    const content = only && chunks.length === 1 ? only : Buffer.concat(chunks);
    const known = this.#placed?.files.get(path);
    const belongsTo = owner && !isRoot(owner) ? `${owner.uid}:${owner.gid} ` : "";
    const identity = known && `${belongsTo}${mode} ${hash("sha256", content, "base64")}`;
    if (known && identity) known.identity = identity;
    const same = this.#earlier?.find(path, content, { mode, identity, owner });
    if (same !== undefined && this.#linked(same, file)) return;
    this.#placeFile(file, mode, owner);
    const descriptor = this.#descriptor ?? -1;
    for (let at = 0; at < content.length;) at += writeSync(descriptor, content, at);
  }

  #linked(from: string, file: string): boolean {
    try {
      try {
        linkSync(from, file);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
        this.#remove(file);
        linkSync(from, file);
      }
      return true;
    } catch {
      // It has gone meanwhile, or has as many names as a file can have.
      return false;
    }
  }

  #remove(file: string): void {
    if (this.#placed) this.#placed.isWhole = false;
    this.#tree.remove(file);
  }

  #placeHardLink(target: string, parent: string, file: string): void {
    const source = this.#tree.locate(target);
    const found = lstatSync(source.file, { throwIfNoEntry: false });
    if (source.file === file) return;
    this.#tree.remove(file);
    // A second name of a link would mean something else in another directory.
    if (found?.isSymbolicLink()) {
      const absolute = `/${source.parent}/${readlinkSync(source.file)}`;
      symlinkSync(this.#tree.confine(absolute, parent), file);
    } else if (found?.isFile()) linkSync(source.file, file);
    else throw new Error(`linked to ${JSON.stringify(target)}, which is not a file`);
  }

  #hide(parent: string, name: string): void {
    if (name === opaqueWhiteout) {
      // What is below was there before, or came with this layer.
      this.#tree.empty(parent, (child) => this.#made.has(pathOf(parent, child)));
      return;
    }
    const hidden = name.slice(whiteoutPrefix.length);
    // Further names of this kind are bookkeeping of the file system that invented whiteouts.
    if (hidden.startsWith(whiteoutPrefix)) return;
    if (["", ".", ".."].includes(hidden)) throw new Error("a whiteout of nothing");
    this.#hideLower(parent, hidden);
  }

  #hideLower(parent: string, name: string): void {
    if (!this.#made.has(pathOf(parent, name))) this.#tree.remove(this.#tree.fileAt(parent, name));
  }

  /** An entry keeps the directories above it, too. */
  #remember(parent: string, name: string): void {
    for (let each = pathOf(parent, name); each !== "" && !this.#made.has(each);) {
      this.#made.add(each);
      each = each.slice(0, Math.max(0, each.lastIndexOf("/")));
    }
  }

  #explained(act: () => void): void {
    try {
      act();
    } catch (cause) {
      throw new Error(`entry ${JSON.stringify(this.#entry?.path.slice(0, 300))}`, { cause });
    }
  }
}

const isRoot = ({ uid, gid }: Owner): boolean => uid === 0 && gid === 0;
const othersWrite = (mode: number): boolean => (mode & 0o022) !== 0;

/** Without the right to give files away they stay this process's, as in any image before. */
function give(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!["EPERM", "EINVAL"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

function pathOf(parent: string, name: string): string {
  return parent === "" ? name : `${parent}/${name}`;
}
