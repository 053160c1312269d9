/** Frames of the WebSocket protocol, RFC 6455 section 5. */

export const opcodes = {
  continuation: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
  pong: 10,
} as const;

export interface Frame {
  final: boolean;
  opcode: number;
  payload: Buffer;
}

/** What the peer did that it must not; `code` is the status the connection is closed with. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

interface Head {
  final: boolean;
  opcode: number;
  length: number;
  mask: Buffer;
}

/** Cuts a client's bytes into frames. Holds at most one frame of `limit` bytes. */
export class FrameReader {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #head: Head | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  *read(chunk: Buffer): Generator<Frame> {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    for (;;) {
      this.#head ??= this.#takeHead();
      if (!this.#head || this.#size < this.#head.length) return;
      const { final, opcode, length, mask } = this.#head;
      this.#head = undefined;
      yield { final, opcode, payload: unmasked(this.#take(length), mask) };
    }
  }

  #takeHead(): Head | undefined {
    if (this.#size < 2) return undefined;
    const start = this.#peek(14);
    const [first = 0, second = 0] = start;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const size = 2 + lengthBytes + 4;
    check(first, second, short);
    if (start.length < size) return undefined;
    const length =
      lengthBytes === 0
        ? short
        : lengthBytes === 2
          ? start.readUInt16BE(2)
          : Number(start.readBigUInt64BE(2));
    if (length > this.#limit) throw new ProtocolError(1009, "the message is too large");
    const mask = Buffer.from(this.#take(size).subarray(size - 4));
    return { final: (first & 0x80) !== 0, opcode: first & 0x0f, length, mask };
  }

  #peek(length: number): Buffer {
    const [first] = this.#chunks;
    if (first && first.length >= length) return first.subarray(0, length);
    this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]?.subarray(0, length) ?? Buffer.alloc(0);
  }

  #take(length: number): Buffer {
    const [first, ...rest] = this.#chunks;
    const all = rest.length > 0 || !first ? Buffer.concat(this.#chunks) : first;
    this.#size -= length;
    this.#chunks = this.#size > 0 ? [all.subarray(length)] : [];
    return all.subarray(0, length);
  }
}

function check(first: number, second: number, length: number): void {
  const opcode = first & 0x0f;
  if ((first & 0x70) !== 0) throw new ProtocolError(1002, "a frame has reserved bits");
  if (!Object.values<number>(opcodes).includes(opcode))
    throw new ProtocolError(1002, "a frame has an unknown opcode");
  if ((second & 0x80) === 0) throw new ProtocolError(1002, "a frame is not masked");
  if (opcode >= 8 && (length > 125 || (first & 0x80) === 0))
    throw new ProtocolError(1002, "a control frame is too long or fragmented");
}

function unmasked(payload: Buffer, mask: Buffer): Buffer {
  const result = Buffer.allocUnsafe(payload.length);
  for (let i = 0; i < payload.length; i++) result[i] = (payload[i] ?? 0) ^ (mask[i & 3] ?? 0);
  return result;
}

/** A server's frame: whole, and not masked. */
export function encodeFrame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  if (length < 126) head[1] = length;
  else if (length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}
