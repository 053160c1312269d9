import { watch } from "node:fs";
import { copyFile, open, stat, truncate } from "node:fs/promises";
import { type Clock } from "@spry/kube";

const maxSize = 10 * 1024 * 1024;
const maxMarks = 4096;
const markIntervalMs = 50;

/**
 * The output of one run of a container: written by the container itself, only watched here. Lines
 * carry no time, so marks are kept of how long the file was at what time.
 */
export class LogFile {
  readonly file: string;
  readonly #clock: Clock;
  #marks: { offset: number; at: number }[] = [];
  #stopWatching: () => void = () => {};
  #pending = false;
  #rotating: Promise<void> | undefined;

  constructor(file: string, clock: Clock) {
    this.file = file;
    this.#clock = clock;
  }

  /** The part before the last rotation. */
  get rotated(): string {
    return `${this.file}.1`;
  }

  /** Watches the file (which must exist) until `close`. */
  open(): void {
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

  /** When the byte at this offset had been written, as well as it is known. */
  timeAt(offset: number): number {
    const mark = this.#marks.find((each) => each.offset > offset) ?? this.#marks.at(-1);
    return mark?.at ?? this.#clock.now();
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
    const { size } = await stat(this.file);
    const last = this.#marks.at(-1);
    if (size > (last?.offset ?? 0)) this.#marks.push({ offset: size, at: this.#clock.now() });
    // Bounded: every second mark of an old time is as good.
    if (this.#marks.length > maxMarks) this.#marks = this.#marks.filter((_, i) => i % 2 === 1);
    if (size > maxSize) await (this.#rotating ??= this.#rotate(size));
  }

  /** Copy and truncate: the container writes on through the same descriptor (O_APPEND). */
  async #rotate(size: number): Promise<void> {
    try {
      await copyFile(this.file, this.rotated);
      // What came since is kept; what comes between these two calls is lost, as with any copytruncate.
      const now = (await stat(this.file)).size;
      const rest = await readRange(this.file, size, now - size);
      await truncate(this.file, 0);
      if (rest.length > 0) {
        const handle = await open(this.file, "a");
        await handle.appendFile(rest);
        await handle.close();
      }
      this.#marks = [];
    } finally {
      this.#rotating = undefined;
    }
  }
}

export async function readRange(file: string, start: number, length: number): Promise<Buffer> {
  const handle = await open(file, "r");
  try {
    const buffer = Buffer.alloc(Math.max(0, length));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** The end of a file: at most so many lines and bytes. */
export async function readTail(file: string, lines: number, bytes: number): Promise<string> {
  const { size } = await stat(file);
  const text = (await readRange(file, Math.max(0, size - bytes), Math.min(size, bytes))).toString();
  return text.trimEnd().split("\n").slice(-lines).join("\n");
}
