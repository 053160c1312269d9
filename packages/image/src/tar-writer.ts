import { closeSync, openSync, readSync, statSync } from "node:fs";

/** One entry of a layer. Paths are relative to the image's root, with `/` between parts. */
export type LayerFile =
  | { path: string; content: string | Uint8Array; mode?: number }
  /** `size` in bytes, if it is known already. */
  | { path: string; file: string; mode?: number; size?: number }
  | { path: string; link: string }
  /** Folders are there by what is in them; an entry of its own gives one a mode, or makes an empty one. */
  | { path: string; folder: true; mode: number };

/** What comes after an entry's header. */
export interface EntryContent {
  size: number;
  /** Set when it is a file on disk, which may be too large to be read at once. */
  file?: string;
  read(): Uint8Array;
}

const blockSize = 512;

/** Two empty blocks end an archive. */
export const tarTrailer: Uint8Array = new Uint8Array(2 * blockSize);

/** Sorted by the bytes of the path, which no locale changes; twice the same path is an error. */
export function sortLayerFiles(files: readonly LayerFile[]): LayerFile[] {
  const sorted = files.map((entry) => ({ entry, key: Buffer.from(checkPath(entry.path)) }));
  sorted.sort((a, b) => Buffer.compare(a.key, b.key));
  for (const [index, { entry }] of sorted.entries())
    if (entry.path === sorted[index - 1]?.entry.path)
      throw new Error(`making a layer: ${entry.path} exists twice`);
  return sorted.map(({ entry }) => entry);
}

function checkPath(path: string): string {
  const parts = path.split("/");
  if (
    path.length > 4096 ||
    path.includes("\0") ||
    parts.some((part) => ["", ".", ".."].includes(part))
  )
    throw new Error(
      `making a layer: ${JSON.stringify(path.slice(0, 200))} is not a plain relative path`,
    );
  return path;
}

/** A POSIX (ustar) header, with a pax header before it when a name or size does not fit. */
export function tarHeader(entry: LayerFile): { header: Uint8Array; content: EntryContent } {
  const content = contentOf(entry);
  const link = "link" in entry ? entry.link : "";
  const { type, mode } = kindOf(entry);
  const records: [string, string][] = [];
  const split = splitPath(entry.path);
  if (!split) records.push(["path", entry.path]);
  if (!fits(link, 100)) records.push(["linkpath", link]);
  if (content.size >= 8 ** 11) records.push(["size", String(content.size)]);
  const main = block({
    name: split?.name ?? plain(entry.path).slice(-100),
    prefix: split?.prefix ?? "",
    mode,
    size: content.size % 8 ** 11,
    type,
    link: fits(link, 100) ? link : plain(link).slice(0, 100),
  });
  if (records.length === 0) return { header: main, content };
  const pax = Buffer.from(records.map(([key, value]) => paxRecord(key, value)).join(""));
  const paxBlock = block({
    name: "pax",
    prefix: "",
    mode: 0o644,
    size: pax.length,
    type: "x",
    link: "",
  });
  return { header: Buffer.concat([paxBlock, pax, tarPadding(pax.length), main]), content };
}

function kindOf(entry: LayerFile): { type: string; mode: number } {
  if ("link" in entry) return { type: "2", mode: 0o777 };
  if ("folder" in entry) return { type: "5", mode: entry.mode };
  return { type: "0", mode: (entry.mode ?? 0o644) & 0o100 ? 0o755 : 0o644 };
}

const zeros = new Uint8Array(blockSize);

/** Zeros up to the next full block. */
export function tarPadding(size: number): Uint8Array {
  return zeros.subarray(0, (blockSize - (size % blockSize)) % blockSize);
}

function contentOf(entry: LayerFile): EntryContent {
  if ("link" in entry || "folder" in entry) return { size: 0, read: () => new Uint8Array() };
  if ("content" in entry) {
    const bytes = typeof entry.content === "string" ? Buffer.from(entry.content) : entry.content;
    return { size: bytes.length, read: () => bytes };
  }
  const { file, size = statSync(file).size } = entry;
  return { size, file, read: () => readWhole(file, size) };
}

/** For thousands of small files: one look at each. Throws when it has another size. */
function readWhole(file: string, size: number): Uint8Array {
  const descriptor = openSync(file, "r");
  try {
    // With room for one byte more, a file that has grown shows.
    const bytes = Buffer.allocUnsafe(size + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length && length !== size;) {
      read = readSync(descriptor, bytes, length, bytes.length - length, length);
      length += read;
    }
    if (length !== size) throw new Error(`reading ${file}: it changed meanwhile`);
    return bytes.subarray(0, size);
  } finally {
    closeSync(descriptor);
  }
}

/** ustar keeps 100 bytes of name and, before a slash, 155 of prefix; undefined when that is not enough. */
function splitPath(path: string): { name: string; prefix: string } | undefined {
  if (fits(path, 100)) return { name: path, prefix: "" };
  if (!fits(path, 256)) return undefined;
  const slash = path.indexOf("/", path.length - 101);
  if (slash < 1 || slash > 155) return undefined;
  return { prefix: path.slice(0, slash), name: path.slice(slash + 1) };
}

/** Only ASCII goes into ustar fields: what other bytes mean there is not agreed on. */
function fits(text: string, length: number): boolean {
  return text.length <= length && /^[\x20-\x7e]*$/.test(text);
}

function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "_");
}

interface BlockFields {
  name: string;
  prefix: string;
  mode: number;
  size: number;
  type: string;
  link: string;
}

/** What all blocks have: owner, group and time, the place of the sum, and the format's name. */
const common = Buffer.alloc(blockSize);
common.write(octal(0, 7), 108);
common.write(octal(0, 7), 116);
common.write(octal(0, 11), 136);
common.write("        ", 148);
common.write("ustar\u000000", 257);

function block({ name, prefix, mode, size, type, link }: BlockFields): Uint8Array {
  const bytes = Buffer.from(common);
  bytes.write(name, 0, "latin1");
  bytes.write(octal(mode, 7), 100, "latin1");
  bytes.write(octal(size, 11), 124, "latin1");
  bytes.write(type, 156, "latin1");
  if (link !== "") bytes.write(link, 157, "latin1");
  if (prefix !== "") bytes.write(prefix, 345, "latin1");
  let sum = 0;
  // What is behind the prefix is empty.
  for (let at = 0; at < 500; at++) sum += bytes[at] ?? 0;
  bytes.write(`${octal(sum, 6)}\0 `, 148, "latin1");
  return bytes;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

/** `<length> <key>=<value>\n`, where the length counts its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const size = Buffer.byteLength(rest);
  let length = size + String(size).length;
  if (String(length).length !== String(size).length) length = size + String(length).length;
  return `${length}${rest}`;
}
