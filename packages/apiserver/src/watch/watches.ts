import { StatusError } from "@spry/kube";
import { type Line, Lines } from "./line.ts";
import { type WatchStream } from "./watch-stream.ts";

const maxWatches = 5000;
/** Of all events together that wait for clients to read them, each counted once however many watches it waits in. */
const maxWaitingBytes = 32 * 1024 * 1024;
/** When slow watches are ended, so many that there is room for a while. */
const enough = 0.75;
/** A place in a queue. */
export const placeBytes = 16;

/** All open watches of a server, and what they hold in memory together. */
export class Watches {
  readonly lines = new Lines();
  readonly #open = new Set<WatchStream>();
  readonly #maxBytes: number;
  #bytes = 0;

  /** `maxBytes` may wait in all watches together. */
  constructor(maxBytes = maxWaitingBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Throws a `StatusError` 429 when there are as many as there may be. */
  checkRoom(): void {
    if (this.#open.size < maxWatches) return;
    throw new StatusError({
      code: 429,
      message: `this server has ${maxWatches} open watches, its limit: end some, or retry later`,
    });
  }

  open(stream: WatchStream): void {
    this.#open.add(stream);
  }

  close(stream: WatchStream): void {
    this.#open.delete(stream);
  }

  hold(line: Line): void {
    if (line.holders++ === 0) this.#bytes += line.bytes.length;
    this.#bytes += placeBytes;
  }

  release(line: Line): void {
    this.#bytes -= placeBytes;
    if (--line.holders > 0) return;
    this.#bytes -= line.bytes.length;
    line.forget();
  }

  /** Objects that a watch still has to show from its beginning. */
  holdPlaces(count: number): void {
    this.#bytes += count * placeBytes;
  }

  /** Ends watches until the rest fits again, those with the most waiting first. */
  enforce(): void {
    if (this.#bytes <= this.#maxBytes) return;
    const slowest = [...this.#open].sort((a, b) => b.waitingBytes - a.waitingBytes);
    for (const end of [
      (stream: WatchStream) => stream.expire(),
      (stream: WatchStream) => stream.cut(),
    ]) {
      for (const stream of slowest) {
        if (this.#bytes <= this.#maxBytes * enough) return;
        if (stream.waitingBytes > 0) end(stream);
      }
    }
  }
}
