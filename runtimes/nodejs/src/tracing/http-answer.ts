const limits = { bytes: 64 * 1024 };
/** The version and status after any that only announce another (RFC 9110 section 15.2), and the head if it is all there. */
const pattern =
  /^(?:HTTP\/1\.1 1\d\d [^]*?\r\n\r\n)*HTTP\/1\.([01]) ([2-5]\d\d)(?:([^]*?\r\n)\r\n)?/;

/** What has come of an answer whose status is all that matters. */
export class HttpAnswer {
  #text = "";
  #code: number | undefined;
  #isWhole = false;

  /** Undefined until it is there. */
  get code(): number | undefined {
    return this.#code;
  }

  get isEmpty(): boolean {
    return this.#text === "";
  }

  /**
   * All of it has been received, and another may follow on the same connection. Also false if only the end of the
   * connection shows where it ends.
   */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  add(chunk: Buffer): void {
    if (this.#text.length > limits.bytes) return;
    this.#text += chunk.toString("latin1");
    const [known = "", version, code, head] = pattern.exec(this.#text) ?? [];
    if (code === undefined) return;
    this.#code = Number(code);
    if (version === "0" || head === undefined || /\r\nconnection:[^\r]*close/i.test(head)) return;
    const [, given] = /\r\ncontent-length: *(\d+)[ \t]*\r\n/i.exec(head) ?? [];
    const length = this.#code === 204 ? 0 : Number(given);
    this.#isWhole = this.#text.length - known.length === length;
  }
}
