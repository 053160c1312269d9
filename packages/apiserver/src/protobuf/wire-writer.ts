const initialBytes = 2048;

/**
 * Writes proto2's wire format from its end to its beginning: when the length of a message has to be
 * written, the message is there already. Call in reverse: the last field first, a value before its tag.
 */
export class WireWriter {
  #buffer = Buffer.allocUnsafe(initialBytes);
  #at = initialBytes;

  /** Bytes written so far. */
  get length(): number {
    return this.#buffer.length - this.#at;
  }

  /** What has been written; a view, valid until the next write. */
  finish(): Buffer<ArrayBuffer> {
    return this.#buffer.subarray(this.#at);
  }

  tag(number: number, wireType: number): void {
    this.varint(number * 8 + wireType);
  }

  /** A signed 64-bit integer: negative numbers take ten bytes. */
  varint(value: number | bigint): void {
    if (typeof value === "bigint") return this.#longVarint(value);
    if (value >= 0 && value < 128) {
      this.#reserve(1);
      this.#buffer[this.#at] = value;
      return;
    }
    if (value < 0 || value > Number.MAX_SAFE_INTEGER) return this.#longVarint(value);
    let length = 1;
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
    this.#reserve(length);
    let rest = value;
    for (let at = this.#at; at < this.#at + length - 1; at++) {
      this.#buffer[at] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#buffer[this.#at + length - 1] = rest;
  }

  #longVarint(value: number | bigint): void {
    const bytes: number[] = [];
    let rest = BigInt.asUintN(64, BigInt(value));
    for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    this.bytes(Buffer.from([...bytes, Number(rest)]));
  }

  double(value: number): void {
    this.#reserve(8);
    this.#buffer.writeDoubleLE(value, this.#at);
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#at);
  }

  /** The text with its length before it. */
  text(text: string): void {
    const length = Buffer.byteLength(text);
    this.#reserve(length);
    this.#buffer.write(text, this.#at, "utf8");
    this.varint(length);
  }

  /** What `write` writes, with its length before it. */
  delimited(write: () => void): void {
    const before = this.length;
    write();
    this.varint(this.length - before);
  }

  #reserve(bytes: number): void {
    if (bytes > this.#at) {
      const written = this.finish();
      const size = Math.max(this.#buffer.length * 2, written.length + bytes);
      this.#buffer = Buffer.allocUnsafe(size);
      this.#at = size - written.length;
      this.#buffer.set(written, this.#at);
    }
    this.#at -= bytes;
  }
}
