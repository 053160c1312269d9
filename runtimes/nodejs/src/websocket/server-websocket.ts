import { isUtf8 } from "node:buffer";
import { type Duplex } from "node:stream";
import { encodeFrame, type Frame, FrameReader, opcodes, ProtocolError } from "./frames.ts";

const limits = { unsentBytes: 16 * 1024 * 1024, pingMs: 30_000, closeMs: 5000 };
/** What each waiting frame counts in addition to its bytes: many small ones must reach the limit, too. */
const frameCost = 256;

export interface MessageEvent extends Event {
  readonly data: string | Buffer;
}

export interface CloseEvent extends Event {
  readonly code: number;
  readonly reason: string;
  readonly wasClean: boolean;
}

/**
 * The server's end of a connection, used like a browser's `WebSocket`: `send`, `close`, `readyState`,
 * the events `message`, `close` and `error`. It is open from the start. Bytes arrive as `Buffer`.
 */
export class ServerWebSocket extends EventTarget {
  static readonly CONNECTING = 0;
  static readonly OPEN = 1;
  static readonly CLOSING = 2;
  static readonly CLOSED = 3;
  readonly protocol: string;
  readyState: number = ServerWebSocket.OPEN;
  onmessage: ((event: MessageEvent) => unknown) | null = null;
  onclose: ((event: CloseEvent) => unknown) | null = null;
  onerror: ((event: Event) => unknown) | null = null;
  readonly #socket: Duplex;
  readonly #reader: FrameReader;
  readonly #limit: number;
  readonly #heartbeat: NodeJS.Timeout;
  #parts: Buffer[] = [];
  #partsSize = 0;
  #messageOpcode = 0;
  #isAlive = true;
  #unsent = 0;
  #closed: { code: number; reason: string } | undefined;

  /** `limit` is the size of the largest message in bytes. */
  constructor(socket: Duplex, { protocol, limit }: { protocol: string; limit: number }) {
    super();
    this.protocol = protocol;
    this.#socket = socket;
    this.#limit = limit;
    this.#reader = new FrameReader(limit);
    // As listeners: what they throw must not stop the reading.
    this.addEventListener("message", (event) => this.onmessage?.(event as MessageEvent));
    this.addEventListener("close", (event) => this.onclose?.(event as CloseEvent));
    this.addEventListener("error", (event) => this.onerror?.(event));
    this.#heartbeat = setInterval(() => this.#beat(), limits.pingMs).unref();
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("end", () => socket.end());
    socket.on("error", (error) => this.#emit("error", { error }));
    socket.once("close", () => this.#finish());
  }

  get bufferedAmount(): number {
    return this.#socket.writableLength;
  }

  /** Dropped when the connection is no longer open. A client that does not read is cut off. */
  send(data: string | ArrayBuffer | ArrayBufferView): void {
    if (this.readyState !== ServerWebSocket.OPEN) return;
    if (typeof data === "string") this.#write(opcodes.text, Buffer.from(data));
    else if (isBytes(data)) this.#write(opcodes.binary, bytesOf(data));
    else
      throw new TypeError(
        `sending to a WebSocket: a ${typeof data} was passed, but only text and bytes can be sent`,
      );
    if (this.#unsent > limits.unsentBytes) this.#socket.destroy();
  }

  /** `code` is 1000, or 1001-1014 or 3000-4999; `reason` at most 123 bytes. */
  close(code = 1000, reason = ""): void {
    if (this.readyState !== ServerWebSocket.OPEN) return;
    if (!isSendable(code))
      throw new RangeError(`closing a WebSocket: ${code} is not a valid close code`);
    const text = Buffer.alloc(123);
    // Whole characters only: half of one is not valid text.
    const { written } = new TextEncoder().encodeInto(reason, text);
    this.readyState = ServerWebSocket.CLOSING;
    const payload = Buffer.concat([
      Buffer.from([code >> 8, code & 0xff]),
      text.subarray(0, written),
    ]);
    this.#write(opcodes.close, payload);
    setTimeout(() => this.#socket.destroy(), limits.closeMs).unref();
  }

  #write(opcode: number, payload: Uint8Array): void {
    if (!this.#socket.writable) return;
    const cost = payload.length + frameCost;
    this.#unsent += cost;
    this.#socket.write(encodeFrame(opcode, payload), () => (this.#unsent -= cost));
  }

  #receive(chunk: Buffer): void {
    this.#isAlive = true;
    // Data that a client sends after the end has no reader: keeping it would fill the memory until the client
    // disconnects.
    if (this.#closed) return;
    try {
      for (const frame of this.#reader.read(chunk)) {
        if (this.#closed) return;
        this.#accept(frame);
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.close(error.code, error.message);
      this.#closed = { code: error.code, reason: error.message };
      this.#socket.end();
    }
  }

  #accept({ final, opcode, payload }: Frame): void {
    if (opcode === opcodes.ping) return this.#answerPing(payload);
    if (opcode === opcodes.pong) return;
    if (opcode === opcodes.close) return this.#acceptClose(payload);
    const isContinued = this.#messageOpcode !== 0;
    if ((opcode === opcodes.continuation) !== isContinued)
      throw new ProtocolError(1002, "a message's frames are out of order");
    if (!isContinued) this.#messageOpcode = opcode;
    this.#partsSize += payload.length;
    if (this.#partsSize > this.#limit || this.#parts.length > 10_000)
      throw new ProtocolError(1009, "the message is too large");
    this.#parts.push(payload);
    if (final) this.#deliver();
  }

  /** Not of a client that does not read: its pongs would fill the memory. It may miss all but the last. */
  #answerPing(payload: Buffer): void {
    if (!this.#socket.writableNeedDrain) this.#write(opcodes.pong, payload);
  }

  #deliver(): void {
    const [first] = this.#parts;
    const bytes = this.#parts.length === 1 && first ? first : Buffer.concat(this.#parts);
    const isText = this.#messageOpcode === opcodes.text;
    this.#parts = [];
    this.#partsSize = 0;
    this.#messageOpcode = 0;
    if (isText && !isUtf8(bytes)) throw new ProtocolError(1007, "the text is not valid UTF-8");
    this.#emit("message", { data: isText ? bytes.toString() : bytes });
  }

  #acceptClose(payload: Buffer): void {
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
    const reason = payload.subarray(2);
    if (payload.length === 1 || (code !== 1005 && !isSendable(code)))
      throw new ProtocolError(1002, "the close code is invalid");
    if (!isUtf8(reason)) throw new ProtocolError(1007, "the close reason is not valid UTF-8");
    this.#closed = { code, reason: reason.toString() };
    this.close(code === 1005 ? 1000 : code);
    this.#socket.end();
  }

  /** A peer that is silent for two beats is gone, whatever the network says. */
  #beat(): void {
    if (!this.#isAlive) return void this.#socket.destroy();
    this.#isAlive = false;
    this.#write(opcodes.ping, Buffer.alloc(0));
  }

  #finish(): void {
    clearInterval(this.#heartbeat);
    this.readyState = ServerWebSocket.CLOSED;
    const { code, reason } = this.#closed ?? { code: 1006, reason: "" };
    this.#emit("close", { code, reason, wasClean: this.#closed !== undefined });
  }

  #emit(type: "message" | "close" | "error", members: object): void {
    this.dispatchEvent(Object.assign(new Event(type), members));
  }
}

function isSendable(code: number): boolean {
  const isDefined = code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code);
  return isDefined || (code >= 3000 && code <= 4999);
}

function isBytes(data: unknown): data is ArrayBuffer | ArrayBufferView {
  return ArrayBuffer.isView(data) || data instanceof ArrayBuffer;
}

function bytesOf(data: ArrayBuffer | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}
