import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";

/** What a mark says: the store has acknowledged this revision, and its log had this many bytes then. */
export interface Acknowledged {
  revision: number;
  /** 0 for a store that was closed in good order: SQLite removes the log then. */
  logBytes: number;
}

const digits = 16;
const length = `${"0".repeat(digits)} ${"0".repeat(digits)} ${"0".repeat(8)}\n`.length;

/**
 * A file next to the store that records what has been acknowledged. Without it, a log that was deleted, or shortened
 * between two transactions, looks like one that never held more. It is written after the log has been synced and is
 * not synced itself: it may lag behind after a power cut, but never names what is not on disk. It costs a few
 * microseconds for each sync of the log.
 */
export class AcknowledgedMark {
  readonly #descriptor: number;

  constructor(file: string) {
    this.#descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  /** Undefined where there is none yet, or none that is whole. */
  read(): Acknowledged | undefined {
    const bytes = Buffer.alloc(length);
    if (readSync(this.#descriptor, bytes, 0, length, 0) < length) return undefined;
    const [revision = "", logBytes = "", sum] = bytes.toString("latin1").trimEnd().split(" ");
    if (sum !== sumOf(`${revision} ${logBytes}`)) return undefined;
    return { revision: Number(revision), logBytes: Number(logBytes) };
  }

  /** A mark that cannot be written lags behind, as after a power cut: no reason to fail what is on disk. */
  write({ revision, logBytes }: Acknowledged): void {
    const text = `${decimal(revision)} ${decimal(logBytes)}`;
    try {
      writeSync(this.#descriptor, `${text} ${sumOf(text)}\n`, 0, "latin1");
    } catch {
      return;
    }
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

const decimal = (value: number) => String(value).padStart(digits, "0");
const sumOf = (text: string) => crc32(text).toString(16).padStart(8, "0");
