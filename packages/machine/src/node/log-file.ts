import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  watch,
  writeSync,
} from "node:fs";
import { open, stat } from "node:fs/promises";
import { type Clock } from "@spry/kube";

/** `containerLogMaxSize` and `containerLogMaxFiles` of a kubelet. */
const defaultLimits = { bytes: 10 * 1024 * 1024, files: 5 };
/** More than this within that time is not a log that anyone reads, and keeps a disk busy. */
const defaultFlood = { bytes: 200 * 1024 * 1024, ms: 10_000 };
export const floodWords = "more than 200 MiB of log within 10 s";
const maxMarks = 4096;
const markIntervalMs = 50;
const copyBytes = 256 * 1024;

/** A stretch of the log in a file of its own. Offsets count from the oldest byte known at the start. */
interface Segment {
  file: string;
  begin: number;
  length: number;
}

/**
 * The output of one run of a container: written by the container itself, only watched here. When it has grown to 10
 * MiB it is moved to `<file>.1`, which moves to `.2`, and so on to `.4`, the last. The container keeps writing
 * through the same descriptor (O_APPEND), so the file is copied and truncated; a line written in the microseconds
 * between the last read and the truncation is lost. Offsets continue through rotations, so that a reader who follows
 * the log misses nothing. Lines carry no time, so marks record how long the log was at what time.
 */
export class LogFile {
  readonly file: string;
  readonly #clock: Clock;
  readonly #limits: typeof defaultLimits;
  /** Oldest first; the file itself is not among them. */
  #rotated: Segment[] = [];
  /** Of the first byte of the file itself. */
  #base = 0;
  #marks: { offset: number; at: number }[] = [];
  #stopWatching: () => void = () => {};
  #pending = false;
  #isRotating = false;
  readonly #flood: typeof defaultFlood;
  #onFlood: () => void = () => {};
  /** Where the log was when the present count of what is written began. */
  #counted = { offset: 0, at: Number.NEGATIVE_INFINITY };
  /** Readers and a rotation's moves take turns. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(file: string, clock: Clock, limits = defaultLimits, flood = defaultFlood) {
    this.file = file;
    this.#flood = flood;
    this.#clock = clock;
    this.#limits = limits;
    for (let age = limits.files - 1; age > 0; age--) {
      const stats = statSync(this.#fileOf(age), { throwIfNoEntry: false });
      if (!stats) continue;
      this.#rotated.push({ file: this.#fileOf(age), begin: this.#base, length: stats.size });
      this.#base += stats.size;
      this.#marks.push({ offset: this.#base, at: stats.mtimeMs });
    }
    const stats = statSync(file, { throwIfNoEntry: false });
    // What an earlier agent saw being written is at least so old.
    if (stats?.size) this.#marks.push({ offset: this.#base + stats.size, at: stats.mtimeMs });
  }

  #fileOf(age: number): string {
    return `${this.file}.${age}`;
  }

  /** Watches the file (which must exist) until `close`; `onFlood` is called once if it grows too fast. */
  open(onFlood: () => void = () => {}): void {
    this.#onFlood = onFlood;
    try {
      const watcher = watch(this.file, { persistent: false }, () => this.#onChange());
      watcher.on("error", () => this.close());
      this.#stopWatching = () => watcher.close();
    } catch {
      // Out of watches: times are then those of the start and of the end.
    }
    this.#onChange();
  }

  close(): void {
    this.#stopWatching();
  }

  /** The offset of the oldest byte that is kept. */
  get begin(): number {
    return this.#rotated[0]?.begin ?? this.#base;
  }

  /** The offset after the last byte. */
  get end(): number {
    return this.#base + (statSync(this.file, { throwIfNoEntry: false })?.size ?? 0);
  }

  /** When the byte at this offset had been written, as well as it is known. */
  timeAt(offset: number): number {
    const mark = this.#marks.find((each) => each.offset > offset) ?? this.#marks.at(-1);
    return mark?.at ?? this.#clock.now();
  }

  /** At most `length` bytes from an offset on, or from `begin` if that is later; none at the end. */
  read(offset: number, length: number): Promise<{ begin: number; data: Buffer }> {
    return this.#exclusively(async () => {
      const begin = Math.max(offset, this.begin);
      const segment = this.#rotated.find((each) => begin < each.begin + each.length);
      const at = segment ?? {
        file: this.file,
        begin: this.#base,
        length: Number.POSITIVE_INFINITY,
      };
      const within = begin - at.begin;
      const size = Math.min(length, at.length - within);
      const data = await readRange(at.file, within, size).catch(() => Buffer.alloc(0));
      return { begin, data };
    });
  }

  #exclusively<T>(work: () => T | Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  #onChange(): void {
    if (this.#pending) return;
    this.#pending = true;
    void this.#mark().catch(() => {});
    this.#clock.after(markIntervalMs, () => {
      this.#pending = false;
      void this.#mark().catch(() => {});
    });
  }

  async #mark(): Promise<void> {
    if (this.#isRotating) return;
    const { size } = await stat(this.file);
    const offset = this.#base + size;
    this.#count(offset);
    if (offset > (this.#marks.at(-1)?.offset ?? 0))
      this.#marks.push({ offset, at: this.#clock.now() });
    // Bounded: every second mark of an old time is as good.
    if (this.#marks.length > maxMarks) this.#marks = this.#marks.filter((_, i) => i % 2 === 1);
    if (size > this.#limits.bytes && !this.#isRotating) await this.#rotate(size);
  }

  #count(offset: number): void {
    const now = this.#clock.now();
    if (now - this.#counted.at > this.#flood.ms) this.#counted = { offset, at: now };
    if (offset - this.#counted.offset <= this.#flood.bytes) return;
    this.#counted = { offset: Number.POSITIVE_INFINITY, at: Number.POSITIVE_INFINITY };
    this.#onFlood();
  }

  async #rotate(size: number): Promise<void> {
    this.#isRotating = true;
    try {
      const cut = await endOfLine(this.file, size);
      // A file that has grown while no agent was there is not worth more than others.
      const from = Math.max(0, cut - 2 * this.#limits.bytes);
      const copy = `${this.file}.new`;
      await copyRange(this.file, copy, from, cut);
      await this.#exclusively(() => this.#move(copy, from, cut));
    } finally {
      this.#isRotating = false;
    }
  }

  /** In one turn of the event loop, because the container keeps writing. */
  #move(copy: string, from: number, cut: number): void {
    const { files } = this.#limits;
    rmSync(this.#fileOf(files - 1), { force: true });
    for (const segment of this.#rotated.slice(-(files - 2))) {
      const age = Number(segment.file.slice(this.file.length + 1)) + 1;
      renameSync(segment.file, this.#fileOf(age));
      segment.file = this.#fileOf(age);
    }
    renameSync(copy, this.#fileOf(1));
    const newest = { file: this.#fileOf(1), begin: this.#base + from, length: cut - from };
    this.#rotated = [...this.#rotated.slice(-(files - 2)), newest];
    this.#base += cut;
    cutBeginning(this.file, cut);
    this.#marks = this.#marks.filter(({ offset }) => offset >= this.begin);
  }
}

/** Removes the first bytes of a file to which a process may be appending. */
export function cutBeginning(file: string, bytes: number): void {
  const fd = openSync(file, "a+");
  try {
    const rest = Buffer.alloc(Math.max(0, fstatSync(fd).size - bytes));
    const length = readSync(fd, rest, 0, rest.length, bytes);
    ftruncateSync(fd, 0);
    writeSync(fd, rest, 0, length);
  } finally {
    closeSync(fd);
  }
}

/** Where the last line before `size` ends; `size` itself in the midst of a very long one. */
async function endOfLine(file: string, size: number): Promise<number> {
  const start = Math.max(0, size - copyBytes);
  const newline = (await readRange(file, start, size - start)).lastIndexOf(0x0a);
  return newline < 0 ? size : start + newline + 1;
}

async function copyRange(from: string, to: string, begin: number, end: number): Promise<void> {
  const handle = await open(to, "w", 0o600);
  try {
    for (let at = begin; at < end; at += copyBytes)
      await handle.appendFile(await readRange(from, at, Math.min(copyBytes, end - at)));
  } finally {
    await handle.close();
  }
}

async function readRange(file: string, start: number, length: number): Promise<Buffer> {
  const handle = await open(file, "r");
  try {
    const buffer = Buffer.alloc(Math.max(0, length));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** The beginning of a file, however long it is. */
export async function readHead(file: string, bytes: number): Promise<string> {
  return (await readRange(file, 0, bytes)).toString();
}

/** The end of a file: at most so many lines and bytes. */
export async function readTail(file: string, lines: number, bytes: number): Promise<string> {
  const { size } = await stat(file);
  const text = (await readRange(file, Math.max(0, size - bytes), Math.min(size, bytes))).toString();
  return text.trimEnd().split("\n").slice(-lines).join("\n");
}

/** Adds lines to the end of a log whose container has ended; one that it has not completed is completed. */
export async function appendLines(file: string, lines: readonly string[]): Promise<void> {
  const { size } = await stat(file);
  const last = (await readRange(file, Math.max(0, size - 1), 1)).toString();
  const begin = last === "" || last === "\n" ? "" : "\n";
  const handle = await open(file, "a", 0o600);
  try {
    await handle.appendFile(`${begin}${lines.join("\n")}\n`);
  } finally {
    await handle.close();
  }
}
