import { type Publishing } from "./publishing.ts";
import { type Records } from "./records.ts";

/** The server counts how often it has handed out a message, and not which of these tries counted: those are in records. */
export class Tries {
  readonly #records: Records;
  readonly #publishing: Publishing;
  readonly #bucket: string;
  readonly #keptMs: number;

  /** Records are kept for `keptMs`, which is no less than a message is. */
  constructor(records: Records, publishing: Publishing, consumer: string, keptMs: number) {
    this.#records = records;
    this.#publishing = publishing;
    this.#bucket = `tries/${consumer}`;
    this.#keptMs = keptMs;
  }

  async get(position: number): Promise<number> {
    return Number((await this.#records.get(this.#bucket, String(position))) ?? 0);
  }

  async set(position: number, failures: number): Promise<void> {
    const expiresAt = Date.now() + this.#keptMs;
    const record = { bucket: this.#bucket, key: String(position), value: String(failures) };
    await this.#publishing.append([], [{ ...record, expiresAt }]);
  }

  async remove(position: number): Promise<void> {
    await this.#records.remove(this.#bucket, String(position));
  }

  /** Of all messages: the consumer begins again, or is removed. */
  async removeAll(): Promise<void> {
    await this.#records.removeAll(this.#bucket);
  }
}
