import { chmod, mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";

const maxFiles = 20_000;
const maxListBytes = 16 * 1024 * 1024;
const maxBytes = 1024 * 1024 * 1024;

/** Of `files.json`; `perm` is a `FileMode` of Go's package `io/fs`. */
interface Listed {
  name: string;
  size: number;
  perm: number;
  symlink?: string;
  compressed?: boolean;
}

const isDirectory = (perm: number) => perm >= 2 ** 31;

/**
 * Writes to `target` the tree that lies in `source` as go-embed-python's `embed_util` keeps it: `files.json` says what there
 * is, and some files are gzipped. Throws for what is too much, or would come to lie or lead outside of `target`.
 */
export async function unpackEmbedded(source: string, target: string): Promise<void> {
  const list = path.join(source, "files.json");
  if ((await stat(list)).size > maxListBytes) throw new Error(`${list} is too large`);
  const { files } = JSON.parse(await readFile(list, "utf8")) as { files: Listed[] };
  if (files.length > maxFiles) throw new Error(`${list} has more than ${maxFiles} files`);
  let bytes = 0;
  for (const file of files) {
    const to = path.join(target, inside(file.name));
    if (isDirectory(file.perm)) {
      await mkdir(to, { recursive: true });
      continue;
    }
    await mkdir(path.dirname(to), { recursive: true });
    if (file.symlink !== undefined) {
      inside(path.join(path.dirname(file.name), file.symlink));
      if (path.isAbsolute(file.symlink)) throw new Error(`${file.name} leads to ${file.symlink}`);
      await symlink(file.symlink, to);
      continue;
    }
    const content = await contentOf(path.join(source, file.name), file, maxBytes - bytes);
    bytes += content.length;
    await writeFile(to, content, { flag: "wx" });
    await chmod(to, file.perm & 0o755);
  }
}

async function contentOf(file: string, { compressed }: Listed, most: number): Promise<Buffer> {
  const stored = compressed ? `${file}.gz` : file;
  if ((await stat(stored)).size > most) throw new Error(`more than ${maxBytes} bytes to unpack`);
  const content = await readFile(stored);
  return compressed ? await promisify(gunzip)(content, { maxOutputLength: most }) : content;
}

/** The name, if it is one below the directory that all are in. */
function inside(name: string): string {
  const normal = path.normalize(name);
  if (path.isAbsolute(normal) || normal === ".." || normal.startsWith("../"))
    throw new Error(`${name} would lie outside`);
  return normal;
}
