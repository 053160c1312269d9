import { Duplex } from "node:stream";

/** How a stream reaches the connection that it is part of. */
export interface SpdyLink {
  send(data: Buffer, done: (error?: Error | null) => void): void;
  sendEnd(done: (error?: Error | null) => void): void;
  /** `complete`: both ends have said that nothing more comes. */
  closed(complete: boolean): void;
}

/** Frames are no longer than this, so that streams take turns. */
const maxDataBytes = 64 * 1024;
const bufferBytes = 256 * 1024;

/** One stream of a SPDY connection: `receive` is the connection's side, the rest any Duplex. */
export class SpdyStream extends Duplex {
  readonly headers: ReadonlyMap<string, string>;
  readonly #link: SpdyLink;
  #roomMade: () => void = () => {};

  constructor(headers: ReadonlyMap<string, string>, link: SpdyLink) {
    super({ allowHalfOpen: true, highWaterMark: bufferBytes });
    this.headers = headers;
    this.#link = link;
    // The user of the stream sees it closed; an error must not end the program.
    this.on("error", () => {});
  }

  /** Resolves when more may come. */
  receive(data: Buffer): Promise<void> {
    if (this.destroyed || this.readableEnded || this.push(data)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#roomMade = resolve;
    });
  }

  receiveEnd(): void {
    if (!this.destroyed) this.push(null);
  }

  override _read(): void {
    this.#roomMade();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    const next = (at: number) => {
      const end = Math.min(at + maxDataBytes, chunk.length);
      this.#link.send(chunk.subarray(at, end), (error) => {
        if (error || end === chunk.length) done(error);
        else next(end);
      });
    };
    next(0);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#link.sendEnd(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#roomMade();
    this.#link.closed(this.readableEnded && this.writableFinished);
    done(error);
  }
}
