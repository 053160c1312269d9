import { type ByteSource } from "./byte-source.ts";

/**
 * Text that is made into bytes (UTF-8) as its reader takes them: of a large answer that clients are slow to read, there is only the text
 * that the store has anyway.
 */
export class TextSource implements ByteSource {
  readonly #parts: Iterator<string, undefined>;
  #part = "";
  #at = 0;
  #isDone = false;

  constructor(parts: Iterable<string>) {
    this.#parts = parts[Symbol.iterator]() as Iterator<string, undefined>;
  }

  attach(): void {}

  cancel(): void {
    this.#isDone = true;
    this.#part = "";
    this.#at = 0;
  }

  take(limit: number): Uint8Array | null {
    let text = "";
    while (text.length < limit && this.#next()) {
      const end = this.#endOf(this.#at + limit - text.length);
      text += this.#part.slice(this.#at, end);
      this.#at = end;
    }
    return text === "" ? null : Buffer.from(text);
  }

  /** Whether there is any text left. */
  #next(): boolean {
    while (this.#at >= this.#part.length) {
      if (this.#isDone) return false;
      const { value, done } = this.#parts.next();
      this.#isDone = done === true;
      this.#part = value ?? "";
      this.#at = 0;
    }
    return true;
  }

  /** Both halves of a character stay together. */
  #endOf(wanted: number): number {
    if (wanted >= this.#part.length) return this.#part.length;
    const code = this.#part.charCodeAt(wanted);
    return code >= 0xdc00 && code <= 0xdfff ? wanted + 1 : wanted;
  }
}
