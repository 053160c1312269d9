import { collectGarbage, memoryForValues, memoryLeft } from "./memory-left.ts";
import { monotonicMs } from "./clock.ts";
import { type FunctionRequest } from "./function-request.ts";
import { RequestError } from "./request-error.ts";

/** Of a body: as it came in, in one piece, and the handler's copy. What text and JSON need beyond that is looked at when they are made. */
const copies = 3;
/** Of all bodies together: too little to look for. */
const alwaysBytes = 1024 * 1024;
/** For so long counts what there was room for, and what there was when no other request held anything. */
const freshMs = 100;
const quietMs = 10_000;
const collectMs = 250;
/** After the end of requests that have held more than this, the next look may be worth a collection sooner. */
const worthCollecting = 1024 * 1024;
/** What `JSON.stringify` takes for a moment, of one long text: V8 makes room for it as if each character had to be escaped. */
const answerTimes = 6;
const smallBytes = 16 * 1024;

/**
 * The memory for bodies whose requests have not been answered, all together: without it a few clients could fill the memory,
 * and who does ends the process, with the requests of all others.
 */
class BodyBudget {
  #held = 0;
  #room = 0;
  #roomUntil = 0;
  #quietRoom = 0;
  #quietUntil = 0;
  #collectedAt = 0;
  /** Bytes of requests that have ended since the last collection: what they held may still be counted as used. */
  #released = 0;

  get held(): number {
    return this.#held;
  }

  change(bytes: number): void {
    this.#held += bytes;
  }

  release(bytes: number): void {
    this.#held -= bytes;
    this.#released += bytes;
  }

  /** For so many bytes more than are held. */
  hasRoom(coming: number, alone: boolean): boolean {
    if (this.#held + coming <= alwaysBytes) return true;
    const needed = (this.#held + coming) * copies;
    this.#look(alone);
    if (needed <= this.#room) return true;
    if (!this.collect(alone)) return false;
    this.#roomUntil = 0;
    this.#look(alone);
    return needed <= this.#room;
  }

  /**
   * False if it has just been done. For a request that is alone it is done again where others have ended since: what they have left
   * is no reason to refuse it for good.
   */
  collect(alone: boolean): boolean {
    const isRecent = monotonicMs() - this.#collectedAt < collectMs;
    if (isRecent && !(alone && this.#released > worthCollecting)) return false;
    collectGarbage();
    this.#collectedAt = monotonicMs();
    this.#released = 0;
    return true;
  }

  #look(alone: boolean): void {
    const now = monotonicMs();
    if (now < this.#roomUntil) return;
    this.#roomUntil = now + freshMs;
    // Of what is held, one copy at least is among what is in use; with no other request that is all of it.
    this.#room = memoryLeft() + this.#held;
    if (alone) [this.#quietRoom, this.#quietUntil] = [this.#room, now + quietMs];
    else if (now < this.#quietUntil) this.#room = Math.max(this.#room, this.#quietRoom);
  }
}

const budget = new BodyBudget();

/** How much of the heap is needed for what is made of a body. */
interface Size {
  most(body: Uint8Array): number;
  /** More than that, for the body's length: where there is room for it, nothing need be counted. */
  mostTimes: number;
}

/** What one request takes of it, until it is answered. */
export class HeldBody {
  #bytes = 0;

  /** So much is to come. Only what has come is held: a client may announce much and send little. Throws a `RequestError`. */
  announce(bytes: number): void {
    this.#check(bytes);
  }

  /** Counts bytes that have arrived. Throws a `RequestError` if the budget has no room for them. */
  add(bytes: number): void {
    this.#bytes += bytes;
    budget.change(bytes);
    this.#check(0);
  }

  /**
   * What `make` makes of the body. Throws a `RequestError` when it could need more memory than there is.
   */
  made<T>(body: Uint8Array, size: Size, make: () => T): T {
    const { length } = body;
    if (length < smallBytes) return make();
    const answer = answerTimes * length;
    let { left, used } = memoryForValues();
    if (answer + size.mostTimes * length > left) {
      const needed = answer + size.most(body);
      if (needed > left && budget.collect(this.#isAlone)) ({ left, used } = memoryForValues());
      if (needed > left) throw this.#refusal();
    }
    const value = make();
    // From now on it counts as what it has become.
    const made = memoryForValues().used - used;
    const more = Math.max(0, Math.round(made / copies) - length);
    this.#bytes += more;
    budget.change(more);
    return value;
  }

  release(): void {
    budget.release(this.#bytes);
    this.#bytes = 0;
  }

  #check(coming: number): void {
    if (!budget.hasRoom(coming, this.#isAlone)) throw this.#refusal();
  }

  get #isAlone(): boolean {
    return budget.held === this.#bytes;
  }

  #refusal(): RequestError {
    return this.#isAlone
      ? new RequestError(
          413,
          "the request body is too large for the memory that the Function has left",
        )
      : new RequestError(503, "the bodies of other requests use up the Function's memory");
  }
}

const held = new WeakMap<FunctionRequest, HeldBody>();

/** Released when the request has been answered, or its connection is closed. */
export function heldBodyOf(request: FunctionRequest): HeldBody {
  let body = held.get(request);
  if (!body) {
    held.set(request, (body = new HeldBody()));
    const { res } = request;
    if (res && !res.closed) res.once("close", () => held.get(request)?.release());
  }
  return body;
}
