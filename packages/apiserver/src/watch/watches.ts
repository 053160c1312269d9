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
  /** Of each owner, those that were opened first at the beginning. */
  readonly #byOwner = new Map<string, Set<WatchStream>>();
  readonly #maxBytes: number;
  readonly #maxWatches: number;
  #bytes = 0;

  /** `maxBytes` may wait in all watches together. */
  constructor(maxBytes = maxWaitingBytes, most = maxWatches) {
    this.#maxBytes = maxBytes;
    this.#maxWatches = most;
  }

  /**
   * Makes room for one more watch of this owner: when there are as many as there may be, the owner with the most loses its oldest
   * one. Throws a `StatusError` 429 when that is the owner itself.
   */
  makeRoom(owner: string): void {
    if (this.#open.size < this.#maxWatches) return;
    const own = this.#byOwner.get(owner)?.size ?? 0;
    const [largest] = [...this.#byOwner.values()].sort((a, b) => b.size - a.size);
    const [oldest] = largest ?? [];
    if (oldest && (largest?.size ?? 0) > own + 1) return oldest.cut();
    throw new StatusError({
      code: 429,
      message: `this server has ${this.#maxWatches} open watches, its limit, and none has more of them than you: end some, or retry later`,
      details: { retryAfterSeconds: 1 },
    });
  }

  open(stream: WatchStream): void {
    this.#open.add(stream);
    const streams = this.#byOwner.get(stream.owner);
    if (streams) streams.add(stream);
    else this.#byOwner.set(stream.owner, new Set([stream]));
  }

  close(stream: WatchStream): void {
    this.#open.delete(stream);
    const streams = this.#byOwner.get(stream.owner);
    streams?.delete(stream);
    if (streams?.size === 0) this.#byOwner.delete(stream.owner);
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

  /** Ends watches until the rest fits again: of the owner with the most waiting first, and of its watches those with the most. */
  enforce(): void {
    if (this.#bytes <= this.#maxBytes) return;
    const waiting = new Map<string, number>();
    for (const { owner, waitingBytes } of this.#open)
      waiting.set(owner, (waiting.get(owner) ?? 0) + waitingBytes);
    const ofOwner = ({ owner }: WatchStream) => waiting.get(owner) ?? 0;
    const slowest = [...this.#open].sort(
      (a, b) => ofOwner(b) - ofOwner(a) || b.waitingBytes - a.waitingBytes,
    );
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
