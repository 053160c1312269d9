/** A source image's files, read without a way over the disk: writing thousands of files takes longer than the rest of a build. */
import { type RegistryClient } from "../client/registry-client.ts";
import { decompress } from "../decompress.ts";
import { type TarEntry, TarReader, type TarSink } from "../tar-reader.ts";
import { isLeftOut, type SourceFile, sourceLimits } from "./function-source.ts";
import { sourceLayerOf } from "./source-image.ts";
import { UserError } from "./user-error.ts";

/**
 * The same files as `fetchSourceImage` and `readSource`, in memory. Undefined for an image with anything else than plain files: on a
 * disk it is known what a link in it means. Throws a `UserError` for an image that is not a source.
 */
export async function readSourceImage(
  client: RegistryClient,
  image: string,
  report: (line: string) => void = () => {},
): Promise<SourceFile[] | undefined> {
  const { name, layer, maxBytes } = await sourceLayerOf(client, image);
  const files = new Files();
  const reader = new TarReader(files);
  let size = 0;
  for await (const chunk of decompress(client.getBlob(name, layer), maxBytes)) {
    size += chunk.length;
    if (size > maxBytes) throw new UserError(`source: larger than ${sourceLimits.size / 1e6} MB`);
    reader.push(chunk);
    if (!files.isPlain) return undefined;
  }
  reader.finish();
  report(`fetched source ${name.digest}`);
  if (files.all.size === 0) throw new UserError("source: no files");
  return [...files.all.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

class Files implements TarSink {
  readonly all = new Map<string, SourceFile>();
  readonly #folders = new Set<string>();
  isPlain = true;
  #entry: TarEntry | undefined;
  #chunks: Buffer[] = [];
  /** Whether the entry at hand is one of the source's files. */
  #isKept = false;
  #size = 0;

  begin(entry: TarEntry): void {
    this.#entry = entry;
    this.#chunks = [];
    if (entry.type !== "file" || !isPlainPath(entry.path)) this.isPlain = false;
    this.#isKept = this.isPlain && !entry.path.split("/").some(isLeftOut);
    if (!this.#isKept) return;
    this.#size += entry.size;
    if (this.#size > sourceLimits.size)
      throw new UserError(`source: larger than ${sourceLimits.size / 1e6} MB`);
  }

  data(chunk: Uint8Array): void {
    // The chunk is its sender's.
    if (this.#isKept) this.#chunks.push(Buffer.from(chunk));
  }

  end(): void {
    const { path = "", mode = 0 } = this.#entry ?? {};
    const parts = path.split("/");
    if (!this.#isKept) return;
    if (parts.length - 1 > sourceLimits.depth)
      throw new UserError(`source: more than ${sourceLimits.depth} folders deep at ${path}`);
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const folder = path.slice(0, end);
      if (this.#folders.has(folder)) break;
      this.#folders.add(folder);
    }
    // A file whose name is a folder's as well, or that is there twice: the order decides, as on a disk.
    if (
      this.#folders.has(path) ||
      parts.some((_, at) => this.all.has(parts.slice(0, at).join("/")))
    )
      this.isPlain = false;
    const [only, ...others] = this.#chunks;
    const content = others.length > 0 || !only ? Buffer.concat(this.#chunks) : only;
    this.all.set(path, { path, content, mode: (mode & 0o755) | 0o600 });
    if (this.all.size > sourceLimits.files)
      throw new UserError(`source: more than ${sourceLimits.files} files`);
  }
}

const isPlainPath = (path: string): boolean =>
  path.length <= 4096 && !path.includes("\0") && path.split("/").every(isPlainName);

/** On a disk, a whiteout is not a file but hides one, and longer names are not possible. */
const isPlainName = (name: string): boolean =>
  !["", ".", ".."].includes(name) && !name.startsWith(".wh.") && Buffer.byteLength(name) <= 255;
