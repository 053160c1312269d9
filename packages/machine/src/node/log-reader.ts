import { watch } from "node:fs";
import { type Clock, sleep, StatusError } from "@spry/kube";
import { type LogFile } from "./log-file.ts";

/** `core/v1 PodLogOptions`, as they travel in the query. */
export interface LogOptions {
  follow: boolean;
  previous: boolean;
  /** Not of Kubernetes: how many runs before the previous one. */
  earlier?: number;
  timestamps: boolean;
  tailLines?: number;
  limitBytes?: number;
  /** Milliseconds since the epoch. */
  since?: number;
  sinceSeconds?: number;
  /** Where to begin, in bytes, instead of counting lines. */
  offset?: number;
}

const chunkBytes = 64 * 1024;
/** Changes are pushed; this is for the end of the container, and for where watching does not work. */
const followPollMs = 250;

export function parseLogOptions(query: URLSearchParams): LogOptions {
  const number = (name: string): number | undefined => {
    const text = query.get(name);
    if (text === null || text === "") return undefined;
    if (!/^\d{1,15}$/.test(text))
      throw new StatusError({
        code: 422,
        message: `${name}: must be a whole number, not ${JSON.stringify(text.slice(0, 40))}`,
      });
    return Number(text);
  };
  const flag = (name: string) => ["true", "1"].includes(query.get(name) ?? "");
  const sinceTime = query.get("sinceTime");
  const since = sinceTime ? Date.parse(sinceTime) : undefined;
  if (Number.isNaN(since))
    throw new StatusError({
      code: 422,
      message: "sinceTime: must be a time like 2026-01-31T12:00:00Z",
    });
  const earlier = number("earlier");
  const tailLines = number("tailLines");
  const limitBytes = number("limitBytes");
  const sinceSeconds = number("sinceSeconds");
  return {
    follow: flag("follow"),
    previous: flag("previous"),
    timestamps: flag("timestamps"),
    ...(earlier === undefined ? {} : { earlier }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(since === undefined ? {} : { since }),
    ...(sinceSeconds === undefined ? {} : { sinceSeconds }),
  };
}

/** The bytes that `kubectl logs` asks for; with `follow` until the container has ended. */
export async function* readLog(
  log: LogFile,
  options: LogOptions,
  isRunning: () => boolean,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const chunk of chunksOf(log, options, isRunning, clock, signal)) {
    if (chunk.length >= left) {
      yield chunk.subarray(0, left);
      return;
    }
    left -= chunk.length;
    yield chunk;
  }
}

async function* chunksOf(
  log: LogFile,
  options: LogOptions,
  isRunning: () => boolean,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const since =
    options.since ??
    (options.sinceSeconds === undefined ? undefined : clock.now() - options.sinceSeconds * 1000);
  const stamp = new LineStamper(log, options.timestamps, since);
  let offset = options.offset ?? (await startOffset(log, options.tailLines));
  using changes = new FileChanges(log.file);
  for (;;) {
    // Asked before reading: what it wrote last is then read before the end is believed.
    const running = isRunning();
    while (!signal.aborted) {
      const { begin, data } = await log.read(offset, chunkBytes);
      if (data.length === 0) break;
      const lines = stamp.take(data, begin);
      offset = begin + data.length;
      if (lines.length > 0) yield lines;
    }
    if (!options.follow || !running || signal.aborted) break;
    await changes.next(clock, signal);
  }
  const rest = stamp.rest();
  if (rest.length > 0) yield rest;
}

/** Where the last so many lines begin. */
async function startOffset(log: LogFile, tailLines: number | undefined): Promise<number> {
  if (tailLines === undefined) return log.begin;
  const size = log.end;
  if (tailLines === 0) return size;
  let missing = tailLines;
  for (let end = size; end > log.begin;) {
    const start = Math.max(log.begin, end - chunkBytes);
    const chunk = await readAll(log, start, end);
    for (let at = chunk.length - 1; at >= 0; at--) {
      // The newline at the very end closes the last line; it does not begin another.
      if (chunk[at] !== 0x0a || start + at === size - 1) continue;
      if (--missing === 0) return start + at + 1;
    }
    end = start;
  }
  return log.begin;
}

/** A stretch that may lie in several files. */
async function readAll(log: LogFile, start: number, end: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let offset = start; offset < end;) {
    const { begin, data } = await log.read(offset, end - offset);
    if (data.length === 0) break;
    parts.push(data);
    offset = begin + data.length;
  }
  return Buffer.concat(parts);
}

/** Puts a time before each line, and leaves out lines that are too old. */
class LineStamper {
  readonly #log: LogFile;
  readonly #timestamps: boolean;
  readonly #since: number | undefined;
  #pending: Buffer = Buffer.alloc(0);
  /** Where `#pending` begins. */
  #pendingAt = 0;

  constructor(log: LogFile, timestamps: boolean, since: number | undefined) {
    this.#log = log;
    this.#timestamps = timestamps;
    this.#since = since;
  }

  take(chunk: Buffer, offset: number): Buffer {
    if (!this.#timestamps && this.#since === undefined) return chunk;
    const begin = offset - this.#pending.length;
    const text = Buffer.concat([this.#pending, chunk]);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end; (end = text.indexOf(0x0a, start)) >= 0; start = end + 1)
      lines.push(...this.#line(text.subarray(start, end + 1), begin + start));
    this.#pending = text.subarray(start);
    this.#pendingAt = begin + start;
    // A line without end is cut, not kept in memory.
    if (this.#pending.length > chunkBytes) lines.push(this.rest());
    return Buffer.concat(lines);
  }

  rest(): Buffer {
    const rest = this.#pending;
    this.#pending = Buffer.alloc(0);
    return rest.length === 0 ? rest : Buffer.concat(this.#line(rest, this.#pendingAt));
  }

  #line(line: Buffer, offset: number): Buffer[] {
    const at = this.#log.timeAt(offset);
    if (this.#since !== undefined && at < this.#since) return [];
    if (!this.#timestamps) return [line];
    return [Buffer.from(`${new Date(at).toISOString()} `), line];
  }
}

/** Waits for a file to change. */
class FileChanges implements Disposable {
  #changed = false;
  #notify: () => void = () => {};
  #close: () => void = () => {};

  constructor(file: string) {
    try {
      const watcher = watch(file, { persistent: false }, () => {
        this.#changed = true;
        this.#notify();
      });
      watcher.on("error", () => watcher.close());
      this.#close = () => watcher.close();
    } catch {
      // Not there, or out of watches: the pause in `next` is then the pace.
    }
  }

  async next(clock: Clock, signal: AbortSignal): Promise<void> {
    if (!this.#changed) {
      const woken = new AbortController();
      this.#notify = () => woken.abort();
      await sleep(clock, followPollMs, AbortSignal.any([signal, woken.signal]));
    }
    this.#changed = false;
  }

  [Symbol.dispose](): void {
    this.#close();
  }
}
