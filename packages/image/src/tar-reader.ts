/** One entry of an archive, with what pax and GNU extensions say already applied. */
export interface TarEntry {
  path: string;
  type: "file" | "directory" | "symlink" | "hardlink" | "other";
  mode: number;
  /** Numbers of the owning user and group: names mean something else on another machine. */
  uid: number;
  gid: number;
  /** Bytes of content that follow. */
  size: number;
  /** Target of a link. */
  link: string;
}

/** Takes what the reader finds, in order: `begin`, any number of `data`, `end`, for each entry. */
export interface TarSink {
  begin(entry: TarEntry): void;
  data(chunk: Uint8Array): void;
  end(): void;
}

const blockSize = 512;
/** Names and pax headers: more than any system's path, little enough to hold in memory. */
const extensionSizeLimit = 64 * 1024;

const never = (): boolean => false;
const none = new Uint8Array();

/**
 * A tar reader that chunks are pushed into, synchronously: of thousands of small files nothing waits
 * for a turn of the event loop. Reads POSIX ustar, pax, and GNU's long names and large numbers.
 */
export class TarReader {
  readonly #sink: TarSink;
  /** What has come of the block or extension in progress. */
  #pending: Buffer = Buffer.alloc(0);
  #state: "header" | "extension" | "content" | "padding" | "end" = "header";
  #remaining = 0;
  #padding = 0;
  #extension = { type: "", size: 0 };
  #overrides = new Map<string, string>();
  #emptyBlocks = 0;
  #path = "";

  constructor(sink: TarSink) {
    this.#sink = sink;
  }

  /** Returns what it has not taken yet, if `isDue` says between two entries that others are to have their turn. */
  push(chunk: Uint8Array, isDue: () => boolean = never): Uint8Array {
    let rest: Buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    while (rest.length > 0 && this.#state !== "end") {
      if (this.#state === "content" || this.#state === "padding") rest = this.#pass(rest);
      else {
        rest = this.#gather(rest);
        if (isDue()) return rest;
      }
    }
    return none;
  }

  /** Says that no more comes; throws when the archive is not whole. */
  finish(): void {
    const whole = this.#state === "end" || (this.#state === "header" && this.#pending.length === 0);
    // A last entry without the two empty blocks is common and harmless.
    if (!whole) throw new Error(`the archive ends in the middle of ${JSON.stringify(this.#path)}`);
  }

  #pass(rest: Buffer): Buffer {
    const taken = rest.subarray(0, this.#remaining);
    this.#remaining -= taken.length;
    if (this.#state === "content") this.#sink.data(taken);
    if (this.#remaining === 0) {
      if (this.#state === "content") this.#sink.end();
      const next = this.#state === "content" ? this.#padding : 0;
      this.#state = next > 0 ? "padding" : "header";
      this.#remaining = next;
    }
    return rest.subarray(taken.length);
  }

  #gather(rest: Buffer): Buffer {
    const wanted = this.#state === "header" ? blockSize : padded(this.#extension.size);
    const missing = wanted - this.#pending.length;
    const taken = rest.subarray(0, missing);
    this.#pending = this.#pending.length === 0 ? taken : Buffer.concat([this.#pending, taken]);
    if (this.#pending.length === wanted) {
      const whole = this.#pending;
      this.#pending = Buffer.alloc(0);
      if (this.#state === "header") this.#readHeader(whole);
      else this.#readExtension(whole.subarray(0, this.#extension.size));
    } else if (taken === this.#pending) {
      // The chunk belongs to its sender, who may use it again.
      this.#pending = Buffer.from(taken);
    }
    return rest.subarray(taken.length);
  }

  #readHeader(block: Buffer): void {
    if (block.every((byte) => byte === 0)) {
      if (++this.#emptyBlocks === 2) this.#state = "end";
      return;
    }
    this.#emptyBlocks = 0;
    checkSum(block);
    const type = String.fromCharCode(block[156] ?? 0);
    const size = numberIn(block, 124, 12);
    if ("xgLK".includes(type)) return this.#startExtension(type, size);
    this.#startEntry(this.#entryOf(block, type, size));
  }

  #startExtension(type: string, size: number): void {
    if (size > extensionSizeLimit) throw new Error(`an extended header of ${size} bytes`);
    this.#extension = { type, size };
    this.#state = size > 0 ? "extension" : "header";
  }

  #readExtension(content: Buffer): void {
    this.#state = "header";
    const { type } = this.#extension;
    if (type === "L") this.#overrides.set("path", textIn(content, 0, content.length));
    else if (type === "K") this.#overrides.set("linkpath", textIn(content, 0, content.length));
    // Global headers hold comments in practice; a path for every entry would make no sense.
    else if (type === "x")
      for (const [key, value] of paxRecords(content)) this.#overrides.set(key, value);
  }

  #entryOf(block: Buffer, type: string, headerSize: number): TarEntry {
    const overrides = this.#overrides;
    this.#overrides = new Map();
    if (type === "S" || overrides.has("GNU.sparse.major"))
      throw new Error("sparse files are not supported");
    const isUstar = block.toString("latin1", 257, 262) === "ustar";
    const prefix = isUstar && block[263] === 0x30 ? textIn(block, 345, 155) : "";
    const name = textIn(block, 0, 100);
    const path = overrides.get("path") ?? (prefix ? `${prefix}/${name}` : name);
    const link = overrides.get("linkpath") ?? textIn(block, 157, 100);
    const size = overrides.has("size") ? Number(overrides.get("size")) : headerSize;
    if (!Number.isSafeInteger(size) || size < 0)
      throw new Error(`${JSON.stringify(path)}: invalid size`);
    const kind = typeOf(type, path);
    const owner = (key: "uid" | "gid", start: number) =>
      ownerIn(overrides.get(key) ?? numberIn(block, start, 8), path);
    return {
      path,
      type: kind,
      mode: numberIn(block, 100, 8) & 0o7777,
      uid: owner("uid", 108),
      gid: owner("gid", 116),
      size: kind === "file" || kind === "other" ? size : 0,
      link,
    };
  }

  #startEntry(entry: TarEntry): void {
    this.#path = entry.path;
    this.#sink.begin(entry);
    this.#remaining = entry.size;
    this.#padding = padded(entry.size) - entry.size;
    this.#state = entry.size > 0 ? "content" : "header";
    if (entry.size === 0) this.#sink.end();
  }
}

function typeOf(flag: string, path: string): TarEntry["type"] {
  switch (flag) {
    case "0":
    case "\0":
    case "7":
      // Before POSIX a slash at the end was all that made a directory.
      return path.endsWith("/") ? "directory" : "file";
    case "1":
      return "hardlink";
    case "2":
      return "symlink";
    case "5":
      return "directory";
    default:
      return "other";
  }
}

/** The last number means "no change" to `chown`. */
const maxOwner = 2 ** 32 - 2;

function ownerIn(value: string | number, path: string): number {
  const id = Number(value);
  if (Number.isInteger(id) && id >= 0 && id <= maxOwner) return id;
  throw new Error(`${JSON.stringify(path)}: invalid owner`);
}

function padded(size: number): number {
  return Math.ceil(size / blockSize) * blockSize;
}

/** Sum of the header's bytes with its own field as spaces. Old writers summed signed bytes: not taken. */
function checkSum(block: Buffer): void {
  let sum = 8 * 0x20;
  for (let at = 0; at < blockSize; at++) if (at < 148 || at >= 156) sum += block[at] ?? 0;
  if (sum !== numberIn(block, 148, 8))
    throw new Error("not a tar archive, or a damaged one: wrong checksum");
}

function textIn(block: Buffer, start: number, length: number): string {
  const end = block.indexOf(0, start);
  return block.toString("utf8", start, end < 0 || end > start + length ? start + length : end);
}

/** An octal number, or GNU's base 256 when the first bit is set. */
function numberIn(block: Buffer, start: number, length: number): number {
  if (((block[start] ?? 0) & 0x80) === 0) {
    const digits = block
      .toString("latin1", start, start + length)
      .replace(/[\0 ]+$/, "")
      .trim();
    if (!/^[0-7]*$/.test(digits))
      throw new Error("not a tar archive, or a damaged one: wrong number");
    return Number.parseInt(digits || "0", 8);
  }
  let value = (block[start] ?? 0) & 0x7f;
  for (let at = start + 1; at < start + length; at++) value = value * 256 + (block[at] ?? 0);
  return value;
}

function* paxRecords(content: Buffer): Generator<[string, string]> {
  for (let at = 0; at < content.length;) {
    const space = content.indexOf(0x20, at);
    const length = space < 0 ? Number.NaN : Number(content.toString("latin1", at, space));
    const end = at + length;
    const equals = content.indexOf(0x3d, space);
    const valid =
      Number.isInteger(length) && end <= content.length && equals > space && equals < end;
    if (!valid || content[end - 1] !== 0x0a) throw new Error("a damaged pax header");
    yield [
      content.toString("utf8", space + 1, equals),
      content.toString("utf8", equals + 1, end - 1),
    ];
    at = end;
  }
}
