import { type EventEmitter } from "node:events";
import { OwnerQueue } from "@spry/kube";

/** What a body may bring before it waits for its next turn. Smaller bodies never wait. */
const stepBytes = 64 * 1024;
/** How many bodies have a turn before other input is looked at. */
const stepsOfRound = 4;
/** Of a body that is not wanted: a client that sends no more than that, such as one that is a little too long, keeps its connection. */
const discardedBytes = 2 * 1024 * 1024;
/** In milliseconds: how long a client that sends more has for the answer before its connection ends. */
const lingerMs = 1000;

/** A request whose body arrives; paused, it leaves what its client sends in the client's hands. */
export type Incoming = Pick<EventEmitter, "on" | "once"> & {
  pause(): unknown;
  resume(): unknown;
  destroy(): unknown;
};

interface Body {
  incoming: Incoming;
  owner: string;
  /** Bytes that it may still bring in this turn. */
  left: number;
  /** Bytes that it may still bring in all, if they are not wanted. */
  leftInAll: number;
}

/**
 * Large bodies arrive in turns. Node.js reads from a connection as long as there is something to read, up to some MiB, and then from
 * the next one: with hundreds of clients that send, one round of the event loop would take many seconds, and no other request would
 * be looked at. Owners have their turns one after the other, and each owner's bodies in the order in which they came to wait.
 */
export class BodyTurns {
  readonly #waiting = new OwnerQueue<Body>();
  readonly #bodies = new WeakMap<Incoming, Body>();
  #isScheduled = false;

  /** Receives the whole body by turns. */
  receive(incoming: Incoming, owner: string, receive: (chunk: Buffer) => void): void {
    const body = this.#bodyOf(incoming, owner);
    incoming.on("data", (chunk: Buffer) => {
      body.left -= chunk.length;
      body.leftInAll -= chunk.length;
      if (body.leftInAll <= 0) this.#end(body);
      else if (body.left <= 0) this.#wait(body);
      receive(chunk);
    });
  }

  /**
   * Throws away what is still to come. A client that is still writing would not see the answer on a connection that is cut, so much
   * that comes is only not read, and a moment later the connection ends.
   */
  discard(incoming: Incoming, owner: string): void {
    if (!this.#bodies.has(incoming)) this.receive(incoming, owner, () => {});
    this.#bodyOf(incoming, owner).leftInAll = discardedBytes;
  }

  #bodyOf(incoming: Incoming, owner: string): Body {
    let body = this.#bodies.get(incoming);
    if (!body) {
      const made: Body = { incoming, owner, left: stepBytes, leftInAll: Infinity };
      incoming.once("close", () => this.#forget(made));
      this.#bodies.set(incoming, (body = made));
    }
    return body;
  }

  #end(body: Body): void {
    body.incoming.pause();
    this.#forget(body);
    setTimeout(() => body.incoming.destroy(), lingerMs).unref();
  }

  #wait(body: Body): void {
    body.incoming.pause();
    this.#waiting.add(body.owner, body);
    this.#schedule();
  }

  #forget(body: Body): void {
    this.#waiting.remove(body.owner, body);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // After the input of this round, and before that of the next one.
    setImmediate(() => {
      this.#isScheduled = false;
      for (let step = 0; step < stepsOfRound; step++) this.#next();
      if (!this.#waiting.isEmpty) this.#schedule();
    });
  }

  #next(): void {
    const body = this.#waiting.next();
    if (!body) return;
    body.left = stepBytes;
    body.incoming.resume();
  }
}
