import { type ServerResponse } from "node:http";
import { OwnerQueue, sliceMs } from "@spry/kube";
import { type ByteSource } from "./byte-source.ts";

/** A client that takes nothing for so long while there is something for it is cut off. */
const stallMs = 30_000;
/** What ends is to be read within a minute, as on a cluster, or at this pace. */
const patienceMs = 60_000;
const leastBytesPerMs = 256;

/**
 * Writes bodies to many connections: slice by slice, their owners and the connections of each taking turns, the next slice only when the one before has
 * left the process. What a TLS socket is given at once it keeps encrypted, a copy for each connection.
 */
class Pump {
  readonly #waiting = new OwnerQueue<Sender>();
  #isScheduled = false;

  add(sender: Sender): void {
    this.#waiting.add(sender.owner, sender);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    const end = performance.now() + sliceMs();
    this.#isScheduled = false;
    do {
      const sender = this.#waiting.next();
      if (!sender) return;
      sender.send();
    } while (performance.now() < end);
    if (!this.#waiting.isEmpty) this.#schedule();
  }
}

const pump = new Pump();

class Sender {
  readonly owner: string;
  readonly #source: ByteSource;
  readonly #outgoing: ServerResponse;
  readonly #sliceBytes: number;
  readonly #settle: () => void;
  readonly #ends: boolean;
  readonly #begunAt = performance.now();
  #sentBytes = 0;
  #state: "idle" | "queued" | "writing" | "done" = "idle";
  #stalled: NodeJS.Timeout | undefined;

  constructor(
    source: ByteSource,
    outgoing: ServerResponse,
    { sliceBytes, ends, owner }: PumpOptions,
    settle: () => void,
  ) {
    this.owner = owner;
    this.#ends = ends;
    this.#source = source;
    this.#outgoing = outgoing;
    this.#sliceBytes = sliceBytes;
    this.#settle = settle;
  }

  start(): void {
    this.#outgoing.once("close", () => this.#finish());
    this.#source.attach({ ready: () => this.ready(), cut: () => this.#outgoing.destroy() });
    this.ready();
  }

  ready(): void {
    if (this.#state !== "idle") return;
    this.#state = "queued";
    pump.add(this);
  }

  send(): void {
    if (this.#state !== "queued") return;
    const bytes = this.#taken();
    if (this.#outgoing.destroyed) return;
    if (bytes === null) {
      this.#state = "done";
      this.#outgoing.end();
      return;
    }
    if (bytes === undefined) {
      this.#state = "idle";
      return;
    }
    this.#state = "writing";
    this.#sentBytes += bytes.length;
    this.#stalled = setTimeout(() => this.#outgoing.destroy(), stallMs);
    this.#outgoing.write(bytes, () => this.#written());
  }

  /** What cannot be made ends this answer, and no other. */
  #taken(): Uint8Array | undefined | null {
    try {
      return this.#source.take(this.#sliceBytes);
    } catch {
      this.#outgoing.destroy();
      return null;
    }
  }

  #written(): void {
    clearTimeout(this.#stalled);
    if (this.#state !== "writing") return;
    this.#state = "idle";
    const allowedMs = patienceMs + this.#sentBytes / leastBytesPerMs;
    if (this.#ends && performance.now() - this.#begunAt > allowedMs) this.#outgoing.destroy();
    else this.ready();
  }

  #finish(): void {
    clearTimeout(this.#stalled);
    this.#state = "done";
    this.#source.cancel();
    this.#settle();
  }
}

export interface PumpOptions {
  sliceBytes: number;
  /** Who has a turn together. */
  owner: string;
  /** Whether the body has an end that is there already, unlike a watch's. */
  ends: boolean;
}

/**
 * Writes all that the source gives, `sliceBytes` at a time, and ends the response; resolves when the connection is done with it,
 * either way.
 */
export function pumpInto(
  outgoing: ServerResponse,
  source: ByteSource,
  options: PumpOptions,
): Promise<void> {
  return new Promise((resolve) => {
    if (outgoing.destroyed || outgoing.closed) {
      source.cancel();
      return resolve();
    }
    new Sender(source, outgoing, options, resolve).start();
  });
}
