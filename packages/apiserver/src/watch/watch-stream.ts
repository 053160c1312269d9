import { StatusError } from "@spry/kube";
import { type ByteReader, type ByteSource } from "../http/byte-source.ts";
import { type Line, ownLine } from "./line.ts";
import { placeBytes, type Watches } from "./watches.ts";

/** One client that does not read: its watch ends when so much waits for it, whatever the others do. */
const maxWaitingBytes = 16 * 1024 * 1024;

/** Lines that are made when it is their turn. */
interface Later {
  count: number;
  /** Undefined when it cannot be made: the watch ends. */
  line(index: number): Line | undefined;
  /** Called once, when all lines have been made or none will be. */
  done?: () => void;
}

/** The events of one watch on their way to its client. */
export class WatchStream implements ByteSource {
  /** Whose share of all watches it is in. */
  readonly owner: string;
  readonly #watches: Watches;
  readonly #errorLine: (error: StatusError) => Uint8Array;
  readonly #onClose: () => void;
  #reader: ByteReader | undefined;
  #queue: (Line | Later)[] = [];
  #next = 0;
  /** Of what is at the head of the queue and made when it is its turn. */
  #index = 0;
  /** What is being written, or was just taken by the reader. */
  #front: Line | undefined;
  #offset = 0;
  #waitingBytes = 0;
  /** Places of what is made when it is its turn. */
  #places = 0;
  #isEnded = false;
  #isClosed = false;

  /** `onClose` is called once, when nothing more will be taken. */
  constructor(
    watches: Watches,
    errorLine: (error: StatusError) => Uint8Array,
    onClose: () => void,
    owner = "",
  ) {
    this.owner = owner;
    this.#watches = watches;
    this.#errorLine = errorLine;
    this.#onClose = onClose;
    watches.open(this);
  }

  /** What waits for its client, as the server counts it. */
  get waitingBytes(): number {
    return this.#waitingBytes + this.#places * placeBytes;
  }

  /** No more events are taken in. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  push(line: Line): void {
    if (this.#isEnded) return;
    this.#hold(line);
    this.#queue.push(line);
    if (this.#waitingBytes > maxWaitingBytes) this.expire();
    this.#watches.enforce();
    this.#reader?.ready();
  }

  pushLater(later: Later): void {
    if (this.#isEnded || later.count === 0) return later.done?.();
    this.#holdPlaces(later.count);
    this.#queue.push(later);
    this.#watches.enforce();
    this.#reader?.ready();
  }

  /** After what waits. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#reader?.ready();
  }

  /** Its client is too slow: what waits is dropped, and the client is to list again. */
  expire(): void {
    if (this.#isEnded) return;
    if (this.#front && this.#offset === 0) this.#releaseFront();
    this.#drop();
    const message = "the watch was ended because its client reads too slowly: list again";
    const line = ownLine(this.#errorLine(new StatusError({ code: 410, message })));
    this.#hold(line);
    this.#queue.push(line);
    this.end();
  }

  /** In the middle of an event. */
  cut(): void {
    this.#close();
    this.#reader?.cut();
  }

  attach(reader: ByteReader): void {
    this.#reader = reader;
  }

  cancel(): void {
    this.#close();
    this.#reader?.ready();
  }

  take(limit: number): Uint8Array | undefined | null {
    this.#watches.enforce();
    const first = this.#part(limit);
    if (!first) {
      if (!this.#isEnded) return undefined;
      this.#close();
      return null;
    }
    if (first.length === limit || this.#queue.length === 0) return first;
    // Small events go together, as a copy.
    const parts = [first];
    let left = limit - first.length;
    while (left > 0) {
      const part = this.#part(left);
      if (!part) break;
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** Of one line, which is held until the next part is taken. */
  #part(limit: number): Uint8Array | undefined {
    if (this.#offset === this.#front?.bytes.length) this.#releaseFront();
    const line = (this.#front ??= this.#shift());
    const part = line?.bytes.subarray(this.#offset, this.#offset + limit);
    this.#offset += part?.length ?? 0;
    return part;
  }

  #shift(): Line | undefined {
    const head = this.#queue[this.#next];
    if (!head) return undefined;
    let line: Line;
    if ("count" in head) {
      const made = head.line(this.#index++);
      if (!made) {
        this.#index--;
        this.#drop();
        this.end();
        return undefined;
      }
      line = made;
      this.#holdPlaces(-1);
      this.#hold(line);
      if (this.#index < head.count) return line;
      this.#index = 0;
      head.done?.();
    } else line = head;
    this.#next++;
    // Now and then, so that a long queue is not moved for each of its lines.
    if (this.#next > 256 || this.#next === this.#queue.length) {
      this.#queue.splice(0, this.#next);
      this.#next = 0;
    }
    return line;
  }

  #holdPlaces(count: number): void {
    this.#watches.holdPlaces(count);
    this.#places += count;
  }

  #hold(line: Line): void {
    this.#watches.hold(line);
    this.#waitingBytes += line.bytes.length;
  }

  #release(line: Line): void {
    this.#watches.release(line);
    this.#waitingBytes -= line.bytes.length;
  }

  #releaseFront(): void {
    if (this.#front) this.#release(this.#front);
    this.#front = undefined;
    this.#offset = 0;
  }

  #drop(): void {
    for (const head of this.#queue.splice(0).slice(this.#next)) {
      if ("count" in head) {
        this.#holdPlaces(this.#index - head.count);
        head.done?.();
      } else this.#release(head);
      this.#index = 0;
    }
    this.#next = 0;
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isEnded = true;
    this.#releaseFront();
    this.#drop();
    this.#watches.close(this);
    this.#onClose();
  }
}
