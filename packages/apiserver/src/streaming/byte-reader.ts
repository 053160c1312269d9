/** Takes exactly so many bytes from a stream of chunks. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #pending: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Undefined when the stream ends before. For small numbers: the bytes are held together. */
  async take(length: number): Promise<Buffer | undefined> {
    while (this.#pending.length < length) {
      const { done, value } = await this.#chunks.next();
      if (done) return undefined;
      this.#pending =
        this.#pending.length > 0 ? Buffer.concat([this.#pending, value]) : Buffer.from(value);
    }
    return this.#taken(length);
  }

  /** What has come already, at least one byte and at most so many. */
  async takeSome(most: number): Promise<Buffer | undefined> {
    if (this.#pending.length === 0 && (await this.#hasEnded())) return undefined;
    return this.#taken(Math.min(most, this.#pending.length));
  }

  async #hasEnded(): Promise<boolean> {
    while (this.#pending.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done) return true;
      this.#pending = Buffer.from(value);
    }
    return false;
  }

  #taken(length: number): Buffer {
    const taken = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return taken;
  }
}
