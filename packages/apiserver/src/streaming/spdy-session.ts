import { type Duplex } from "node:stream";
import { ByteReader } from "./byte-reader.ts";
import { SpdyHeaders } from "./spdy-headers.ts";
import { SpdyStream } from "./spdy-stream.ts";

/** Frame types and flags of SPDY/3.1 that Kubernetes' clients use. */
const types = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, goAway: 7, headers: 8 } as const;
const finFlag = 1;
const resetReasons = { protocolError: 1, invalidStream: 2, refusedStream: 3, cancel: 5 } as const;

const headerLength = 8;
const maxControlBytes = 64 * 1024;
const maxStreams = 1_000;

/**
 * The server's side of a SPDY/3.1 connection (draft 3.1), as `kubectl` uses it: many streams on one connection, each
 * opened by the client. Streams have no flow control of their own: Kubernetes' implementation has none, so a stream
 * that is not read holds up the whole connection.
 */
export class SpdySession {
  readonly #connection: Duplex;
  readonly #onStream: (stream: SpdyStream) => void;
  readonly #headers = new SpdyHeaders();
  readonly #streams = new Map<number, SpdyStream>();
  #lastStream = 0;

  constructor(connection: Duplex, onStream: (stream: SpdyStream) => void) {
    this.#connection = connection;
    this.#onStream = onStream;
  }

  /** Reads until the connection ends; whatever is wrong with it ends it. */
  async run(): Promise<void> {
    const reader = new ByteReader(this.#connection);
    try {
      for (;;) {
        const header = await reader.take(headerLength);
        if (!header) return;
        const length = header.readUIntBE(5, 3);
        const fin = (header.readUInt8(4) & finFlag) !== 0;
        const first = header.readUInt32BE(0);
        if (first < 0x8000_0000) await this.#data(reader, first, length, fin);
        else await this.#control(reader, first, length, fin);
      }
    } finally {
      for (const stream of this.#streams.values()) stream.destroy();
      this.#streams.clear();
      this.#headers.close();
      this.#connection.destroy();
    }
  }

  async #data(reader: ByteReader, id: number, length: number, fin: boolean): Promise<void> {
    const stream = this.#streams.get(id);
    // Frames are as long as the client's writes: they are passed on in pieces.
    for (let left = length; left > 0;) {
      const bytes = await reader.takeSome(left);
      if (!bytes) throw new Error("SPDY connection ended within a frame");
      left -= bytes.length;
      await stream?.receive(bytes);
    }
    if (!stream)
      this.#send(controlFrame(types.rstStream, 0, uint32s(id, resetReasons.invalidStream)));
    else if (fin) stream.receiveEnd();
  }

  async #control(reader: ByteReader, first: number, length: number, fin: boolean): Promise<void> {
    const version = (first >>> 16) & 0x7fff;
    if (version !== 3) throw new Error(`SPDY version ${version} is not supported: use version 3`);
    if (length > maxControlBytes) throw new Error("SPDY control frame is too long");
    const body = await reader.take(length);
    if (!body) throw new Error("SPDY connection ended within a frame");
    const idAt = () => {
      if (body.length < 4) throw new Error("SPDY control frame is cut off");
      return body.readUInt32BE(0) & 0x7fff_ffff;
    };
    switch (first & 0xffff) {
      case types.synStream:
        return this.#open(idAt(), body.subarray(10), fin);
      case types.rstStream:
        return void this.#streams.get(idAt())?.destroy();
      case types.ping:
        this.#send(controlFrame(types.ping, 0, body));
        return;
      case types.headers: {
        // Not of interest, but the compression state continues after it.
        await this.#headers.decode(body.subarray(4));
        if (fin) this.#streams.get(idAt())?.receiveEnd();
      }
    }
  }

  async #open(id: number, block: Buffer, fin: boolean): Promise<void> {
    const headers = await this.#headers.decode(block);
    if (id % 2 === 0 || id <= this.#lastStream)
      throw new Error(`SPDY stream ${id} is out of order`);
    this.#lastStream = id;
    if (this.#streams.size >= maxStreams) {
      this.#send(controlFrame(types.rstStream, 0, uint32s(id, resetReasons.refusedStream)));
      return;
    }
    const stream = new SpdyStream(headers, {
      send: (data, done) =>
        this.#connection.write(Buffer.concat([dataHeader(id, data.length, 0), data]), done),
      sendEnd: (done) => this.#connection.write(dataHeader(id, 0, finFlag), done),
      closed: (complete) => {
        this.#streams.delete(id);
        if (!complete)
          this.#send(controlFrame(types.rstStream, 0, uint32s(id, resetReasons.cancel)));
      },
    });
    this.#streams.set(id, stream);
    if (fin) stream.receiveEnd();
    const reply = Buffer.concat([uint32s(id), await this.#headers.encode(new Map())]);
    this.#send(controlFrame(types.synReply, 0, reply));
    this.#onStream(stream);
  }

  #send(frame: Buffer): void {
    if (this.#connection.writable) this.#connection.write(frame);
  }
}

function controlFrame(type: number, flags: number, body: Buffer): Buffer {
  const header = Buffer.alloc(headerLength);
  header.writeUInt16BE(0x8003, 0);
  header.writeUInt16BE(type, 2);
  header.writeUInt8(flags, 4);
  header.writeUIntBE(body.length, 5, 3);
  return Buffer.concat([header, body]);
}

function dataHeader(id: number, length: number, flags: number): Buffer {
  const header = Buffer.alloc(headerLength);
  header.writeUInt32BE(id, 0);
  header.writeUInt8(flags, 4);
  header.writeUIntBE(length, 5, 3);
  return header;
}

function uint32s(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return bytes;
}
