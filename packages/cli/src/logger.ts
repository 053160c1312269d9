import { type Logger } from "@spry/kube";
import { pino, type Level } from "pino";
import { type LogFormat } from "@spry/controller";
import { formatted } from "./log-format.ts";

/** Characters that wait for a disk that is full. */
const maxUnwritten = 256 * 1024;

/** A logger whose level and format may be changed while it runs, those of its children included. */
export interface LeveledLogger extends Logger {
  /** Undefined: the level that it began with. */
  setLevel(level: Level | undefined): void;
  /** Default `json`. */
  setFormat(format: LogFormat | undefined): void;
}

/** JSON lines on standard output, or in a file. `SPRY_LOG_LEVEL`: debug, info (default), warn, error. */
export function createLogger(options: { name: string; file?: string }): LeveledLogger {
  const level = process.env["SPRY_LOG_LEVEL"] ?? "info";
  const destination = pino.destination({
    dest: options.file ?? 1,
    sync: true,
    mode: 0o600,
    maxLength: maxUnwritten,
  });
  // What cannot be written, on a full disk, is dropped: code that logs an error must not fail because of it.
  destination.on("error", () => {});
  const family = new Family();
  let format: LogFormat = "json";
  const root = pino(
    {
      level,
      base: { name: options.name },
      timestamp: pino.stdTimeFunctions.isoTime,
      // A child has the level that its parent had when it was made.
      onChild: (child) => family.add(child),
    },
    { write: (line) => void destination.write(formatted(line, format)) },
  );
  family.add(root);
  return Object.assign(root, {
    setLevel: (next: Level | undefined) => family.setLevel(next ?? level),
    setFormat: (next: LogFormat | undefined) => void (format = next ?? "json"),
  });
}

/** Loggers that are in use: most children live as long as the process, some for one request. */
class Family {
  #members: WeakRef<{ level: string }>[] = [];
  #pruneAt = 64;

  add(member: { level: string }): void {
    this.#members.push(new WeakRef(member));
    if (this.#members.length < this.#pruneAt) return;
    this.#members = this.#members.filter((each) => each.deref() !== undefined);
    this.#pruneAt = Math.max(64, this.#members.length * 2);
  }

  setLevel(level: string): void {
    for (const each of this.#members) {
      const member = each.deref();
      if (member) member.level = level;
    }
  }
}
