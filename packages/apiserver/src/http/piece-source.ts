import { type ByteSource } from "./byte-source.ts";

/** Bytes that are made piece by piece, as their reader takes them. */
export class PieceSource implements ByteSource {
  readonly #pieces: Iterator<Uint8Array, undefined>;
  #piece: Uint8Array = new Uint8Array();
  #isDone = false;

  constructor(pieces: Iterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.iterator]() as Iterator<Uint8Array, undefined>;
  }

  attach(): void {}

  cancel(): void {
    this.#isDone = true;
    this.#piece = new Uint8Array();
  }

  take(limit: number): Uint8Array | null {
    const parts: Uint8Array[] = [];
    let left = limit;
    while (left > 0 && this.#next()) {
      const part = this.#piece.subarray(0, left);
      this.#piece = this.#piece.subarray(part.length);
      parts.push(part);
      left -= part.length;
    }
    if (parts.length === 0) return null;
    return parts.length === 1 ? (parts[0] ?? null) : Buffer.concat(parts);
  }

  /** Whether there is anything left. */
  #next(): boolean {
    while (this.#piece.length === 0) {
      if (this.#isDone) return false;
      const { value, done } = this.#pieces.next();
      this.#isDone = done === true;
      this.#piece = value ?? new Uint8Array();
    }
    return true;
  }
}
