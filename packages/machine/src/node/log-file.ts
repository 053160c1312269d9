import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  watch,
  writeSync,
} from "node:fs";
import { open, stat } from "node:fs/promises";
import { type Clock } from "@spry/kube";
import { PassLoop } from "./pass-loop.ts";

/** `containerLogMaxSize` and `containerLogMaxFiles` of a kubelet. */
const defaultLimits = { bytes: 10 * 1024 * 1024, files: 5 };
/** More than this within that time is not a log that anyone reads, and keeps a disk busy. */
const defaultFlood = { bytes: 200 * 1024 * 1024, ms: 10_000 };
export const floodWords = "more than 200 MiB of log within 10 s";
const maxMarks = 4096;
const markIntervalMs = 50;
/** A change that is not reported is seen within this time. */
const lookMs = 2_000;
const copyBytes = 256 * 1024;
/** What is moved within one turn of the event loop. */
const maxRest = 4 * 1024 * 1024;
/** So often a rotation follows what is written meanwhile. */
const maxRounds = 4;
const noWait = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

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
 * between the last read and the truncation is lost. With its descriptor, the container may also extend or shorten the
 * file: nothing of it is believed longer than a piece takes to be copied. Offsets continue through rotations, so that a reader who follows
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
  #cancelLook: () => void = () => {};
  #pending = false;
  readonly #looks = new PassLoop(() => this.#look());
  readonly #flood: typeof defaultFlood;
  #onFlood: () => void = () => {};
  /** What has been written since a time. */
  #counted = { bytes: 0, since: Number.NEGATIVE_INFINITY };
  #sizeBefore = 0;
  #isFlood = false;
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

  /**
   * Watches the file (which must exist) until `close`; `onFlood` is called once if it grows too fast. What an earlier agent's container
   * has written before does not count for that.
   */
  open(onFlood: () => void = () => {}, { isAdopted = false } = {}): void {
    this.#onFlood = onFlood;
    if (isAdopted) this.#sizeBefore = statSync(this.file, { throwIfNoEntry: false })?.size ?? 0;
    try {
      const watcher = watch(this.file, { persistent: false }, () => this.#onChange());
      watcher.on("error", () => this.close());
      this.#stopWatching = () => watcher.close();
    } catch {
      // Out of watches: times are then those of the start and of the end.
    }
    this.#onChange();
    this.#lookAgain();
  }

  close(): void {
    this.#stopWatching();
    this.#cancelLook();
  }

  /** The offset of the oldest byte that is given to readers: of a file that grew while no agent was there, only the end. */
  get begin(): number {
    const { bytes, files } = this.#limits;
    return Math.max(this.#rotated[0]?.begin ?? this.#base, this.end - (files + 1) * bytes);
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
      const from = Math.max(offset, this.begin);
      const segment = this.#rotated.find((each) => from < each.begin + each.length);
      const at = segment ?? {
        file: this.file,
        begin: this.#base,
        length: Number.POSITIVE_INFINITY,
      };
      const begin = Math.max(from, at.begin);
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
    this.#looks.wake();
    this.#clock.after(markIntervalMs, () => {
      this.#pending = false;
      this.#looks.wake();
    });
  }

  /** Also where no change is reported: watches are few, and the container may have used them up. */
  #lookAgain(): void {
    this.#cancelLook = this.#clock.after(lookMs, () => {
      this.#looks.wake();
      this.#lookAgain();
    });
  }

  /** Resolves when all that has been written so far is counted, and what is too much of it is gone. */
  async settled(): Promise<void> {
    this.#looks.wake();
    await this.#looks.settled();
  }

  /** One look at what the container has done with its file: it may also have extended or shortened it. */
  async #look(): Promise<void> {
    try {
      const { size } = await stat(this.file);
      this.#count(size);
      const offset = this.#base + size;
      if (offset > (this.#marks.at(-1)?.offset ?? 0))
        this.#marks.push({ offset, at: this.#clock.now() });
      // Bounded: every second mark of an old time is as good.
      if (this.#marks.length > maxMarks) this.#marks = this.#marks.filter((_, i) => i % 2 === 1);
      if (size > this.#limits.bytes) await this.#rotate(size);
    } catch {
      // It has been removed, or the disk is full: the next look may see more.
    }
  }

  /** A file that has become shorter was written again from its beginning. */
  #count(size: number): void {
    const now = this.#clock.now();
    const written = size >= this.#sizeBefore ? size - this.#sizeBefore : size;
    this.#sizeBefore = size;
    this.#counted.bytes += written;
    const isFlood = this.#counted.bytes > this.#flood.bytes;
    // What has come since the last look came before now.
    if (now - this.#counted.since > this.#flood.ms) this.#counted = { bytes: 0, since: now };
    if (!isFlood || this.#isFlood) return;
    this.#isFlood = true;
    this.#onFlood();
  }

  /** In pieces, whatever the container does with its file meanwhile. */
  async #rotate(size: number): Promise<void> {
    const copy = `${this.file}.new`;
    const most = 2 * this.#limits.bytes;
    let cut = await endOfLine(this.file, size);
    // A file that has grown while no agent was there is not worth more than others.
    const from = Math.max(0, cut - most);
    let length = await copyRange(this.file, copy, from, cut, "w");
    for (let round = 0; round < maxRounds && length === cut - from; round++) {
      const grown = (await stat(this.file)).size;
      if (grown - cut <= copyBytes || grown - from > most) break;
      const next = await endOfLine(this.file, grown);
      length += await copyRange(this.file, copy, cut, next, "a");
      cut = next;
    }
    await this.#exclusively(() => this.#move(copy, { from, cut, length }));
  }

  /** In one turn of the event loop, because the container keeps writing. */
  #move(copy: string, { from, cut, length }: { from: number; cut: number; length: number }): void {
    const { files } = this.#limits;
    rmSync(this.#fileOf(files - 1), { force: true });
    for (const segment of this.#rotated.slice(-(files - 2))) {
      const age = Number(segment.file.slice(this.file.length + 1)) + 1;
      renameSync(segment.file, this.#fileOf(age));
      segment.file = this.#fileOf(age);
    }
    renameSync(copy, this.#fileOf(1));
    const newest = { file: this.#fileOf(1), begin: this.#base + from, length };
    this.#rotated = [...this.#rotated.slice(-(files - 2)), newest];
    const { removed, left, size } = cutBeginning(this.file, cut);
    // What came since the last look counts as well.
    this.#count(size);
    this.#sizeBefore = left;
    this.#base += removed;
    const { begin } = this;
    this.#marks = this.#marks.filter(({ offset }) => offset >= begin);
  }
}

/**
 * Removes at least the first bytes of a file to which a process may be appending. Of what is left at most 4 MiB stay, the end: as much
 * as can be moved in one turn. Returns the file's size before, how much has gone and how much is left.
 */
export function cutBeginning(
  file: string,
  bytes: number,
): { size: number; removed: number; left: number } {
  const fd = openSync(file, constants.O_RDWR | constants.O_APPEND | noWait);
  try {
    const { size } = assertFile(fstatSync(fd));
    const removed = Math.max(Math.min(bytes, size), size - maxRest);
    const rest = Buffer.alloc(size - removed);
    const left = readSync(fd, rest, 0, rest.length, removed);
    ftruncateSync(fd, 0);
    for (let at = 0; at < left;) at += writeSync(fd, rest, at, left - at);
    return { size, removed, left };
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

/** Returns how many bytes were there to be copied. */
async function copyRange(
  from: string,
  to: string,
  begin: number,
  end: number,
  how: "w" | "a",
): Promise<number> {
  const handle = await open(to, how, 0o600);
  let copied = 0;
  try {
    while (begin + copied < end) {
      const wanted = Math.min(copyBytes, end - begin - copied);
      const piece = await readRange(from, begin + copied, wanted);
      await handle.appendFile(piece);
      copied += piece.length;
      if (piece.length < wanted) break;
    }
    return copied;
  } finally {
    await handle.close();
  }
}

/** Where containers are not kept apart, one may have put something else in the place of its log. */
async function readRange(file: string, start: number, length: number): Promise<Buffer> {
  const handle = await open(file, constants.O_RDONLY | noWait);
  try {
    assertFile(await handle.stat());
    const buffer = Buffer.alloc(Math.max(0, length));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function assertFile<T extends Stats>(stats: T): T {
  if (!stats.isFile()) throw new Error("it is not a regular file");
  return stats;
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
  const { O_WRONLY, O_APPEND, O_CREAT } = constants;
  const handle = await open(file, O_WRONLY | O_APPEND | O_CREAT | noWait, 0o600);
  try {
    await handle.appendFile(`${begin}${lines.join("\n")}\n`);
  } finally {
    await handle.close();
  }
}
