import { badRequest } from "../errors.ts";

/** How the value of a field is written. */
export const wire = { varint: 0, fixed64: 1, delimited: 2, startGroup: 3, endGroup: 4, fixed32: 5 };

const maxGroupDepth = 64;
const maxVarintBytes = 10;

/** Reads proto2's wire format; throws a `StatusError` 400 where the bytes are none. */
export class WireReader {
  readonly #bytes: Buffer;
  #at: number;
  readonly #end: number;

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
  }

  get done(): boolean {
    return this.#at >= this.#end;
  }

  /** The number of the next field and how its value is written. */
  tag(): { number: number; wireType: number } {
    const tag = this.varint();
    const number = Math.floor(tag / 8);
    if (number < 1 || tag > 0xffff_ffff) throw badRequest("the protobuf body has an illegal tag");
    return { number, wireType: tag % 8 };
  }

  /** A signed 64-bit number; beyond 2^53 it is near the one that was written. */
  varint(): number {
    return Number(this.int64());
  }

  /** The same as a `bigint` where a number is not exact. */
  int64(): number | bigint {
    let value = 0;
    let factor = 1;
    const start = this.#at;
    while (this.#at < this.#end && this.#at - start < 7) {
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    return this.#longVarint(value);
  }

  /** The rest of a number of more than 49 bits, which every negative one is. */
  #longVarint(low: number): number | bigint {
    let value = BigInt(low);
    for (let index = 7; index < maxVarintBytes && this.#at < this.#end; index++) {
      const byte = this.#bytes[this.#at++] ?? 0;
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte >= 0x80) continue;
      const signed = BigInt.asIntN(64, value);
      const near = Number(signed);
      return Number.isSafeInteger(near) ? near : signed;
    }
    throw badRequest("the protobuf body has a number that does not end");
  }

  double(): number {
    const at = this.#skipBytes(8);
    return this.#bytes.readDoubleLE(at);
  }

  /** A view of the bytes of a delimited value. */
  bytes(): Buffer {
    const length = this.#length();
    const at = this.#skipBytes(length);
    return this.#bytes.subarray(at, at + length);
  }

  text(): string {
    const length = this.#length();
    const at = this.#skipBytes(length);
    return this.#bytes.toString("utf8", at, at + length);
  }

  /** A reader of what is in a delimited value. */
  nested(): WireReader {
    const length = this.#length();
    const at = this.#skipBytes(length);
    return new WireReader(this.#bytes, at, at + length);
  }

  /** Skips a value that is not needed. */
  skip(wireType: number): void {
    let groups = 0;
    let current = wireType;
    for (;;) {
      if (current === wire.varint) this.varint();
      else if (current === wire.fixed64) this.#skipBytes(8);
      else if (current === wire.delimited) this.#skipBytes(this.#length());
      else if (current === wire.fixed32) this.#skipBytes(4);
      else if (current === wire.startGroup && groups < maxGroupDepth) groups++;
      else if (current === wire.endGroup && groups > 0) groups--;
      else throw badRequest(`the protobuf body has an illegal wire type ${current}`);
      if (groups === 0) return;
      current = this.tag().wireType;
    }
  }

  #length(): number {
    const length = this.varint();
    if (length < 0 || length > this.#end - this.#at) throw cutOff();
    return length;
  }

  #skipBytes(length: number): number {
    const at = this.#at;
    if (length > this.#end - at) throw cutOff();
    this.#at += length;
    return at;
  }
}

function cutOff(): Error {
  return badRequest("the protobuf body is cut off");
}
