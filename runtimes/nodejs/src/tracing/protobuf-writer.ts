const limits = { keptBytes: 64 * 1024 };
/** The wire's types of fields (protobuf, "Encoding"). */
const [varint, fixed64, delimited] = [0, 1, 2];
const two32 = 2 ** 32;

/** Writes one message in protobuf's wire format, field by field. Field numbers are below 2^28. */
export class ProtobufWriter {
  #bytes = Buffer.alloc(0);
  #length = 0;

  /** Where the next byte will be. */
  get length(): number {
    return this.#length;
  }

  /** What `write` writes, as a message of its own; of use until the next is written. */
  write(write: () => void): Uint8Array {
    this.#length = 0;
    write();
    const written = this.#bytes.subarray(0, this.#length);
    // What one message has needed for once is not kept.
    if (this.#bytes.length > limits.keptBytes) this.#bytes = Buffer.alloc(0);
    return written;
  }

  /** A non-negative integer of at most 53 bits. */
  integer(field: number, value: number): void {
    this.#varint(field * 8 + varint);
    this.#varint(value);
  }

  /** An `int64`, also a negative one. */
  int64(field: number, value: number): void {
    this.#varint(field * 8 + varint);
    if (value >= 0) return this.#varint(value);
    // Ten bytes, of two's complement.
    let rest = BigInt.asUintN(64, BigInt(value));
    this.#reserve(10);
    for (; rest > 127n; rest >>= 7n) this.#bytes[this.#length++] = Number(rest & 127n) | 128;
    this.#bytes[this.#length++] = Number(rest);
  }

  double(field: number, value: number): void {
    this.#varint(field * 8 + fixed64);
    this.#reserve(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  /** A moment as `fixed64` nanoseconds, of milliseconds since 1970; exact to a microsecond. Returns where it is. */
  time(field: number, ms: number): number {
    this.#varint(field * 8 + fixed64);
    this.#reserve(8);
    writeTime(this.#bytes, this.#length, ms);
    this.#length += 8;
    return this.#length - 8;
  }

  text(field: number, text: string): void {
    const size = Buffer.byteLength(text);
    this.prefix(field, size);
    this.#reserve(size);
    this.#length += this.#bytes.write(text, this.#length);
  }

  /** Bytes; returns where they are. */
  bytes(field: number, bytes: Uint8Array): number {
    this.prefix(field, bytes.length);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    return this.#length - bytes.length;
  }

  /** What stands before so many bytes of a text, of bytes or of a message. */
  prefix(field: number, size: number): void {
    this.#varint(field * 8 + delimited);
    this.#varint(size);
  }

  /** A message within this one, of what `write` writes. */
  message(field: number, write: () => void): void {
    this.#varint(field * 8 + delimited);
    // Most are shorter than 128 bytes, whose length is one byte; for others it is moved.
    this.#reserve(1);
    const start = ++this.#length;
    write();
    const size = this.#length - start;
    const more = sizeOfVarint(size) - 1;
    // Also for what `#varint` asks for: from where it writes, memory is not made larger.
    this.#reserve(more + 8);
    if (more > 0) this.#bytes.copyWithin(start + more, start, this.#length);
    this.#length = start - 1;
    this.#varint(size);
    this.#length += size;
  }

  #varint(value: number): void {
    this.#reserve(8);
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128))
      this.#bytes[this.#length++] = (rest % 128) + 128;
    this.#bytes[this.#length++] = rest;
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const bytes = Buffer.alloc(Math.max(1024, 2 * needed));
    bytes.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = bytes;
  }
}

/** A moment as `ProtobufWriter.time` has it. */
export function writeTime(bytes: Uint8Array, at: number, ms: number): void {
  const microseconds = Math.round(ms * 1000);
  const high = Math.floor(microseconds / two32);
  // Below 2^42 each: exact.
  const low = (microseconds - high * two32) * 1000;
  const carry = Math.floor(low / two32);
  write32(bytes, at, low - carry * two32);
  write32(bytes, at + 4, high * 1000 + carry);
}

function write32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
}

function sizeOfVarint(value: number): number {
  let size = 1;
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) size++;
  return size;
}
