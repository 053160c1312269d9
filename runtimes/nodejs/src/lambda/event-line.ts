/**
 * One event at a time, as AWS Lambda has it: handlers keep what belongs to an event in variables of their module. Events come in turn to
 * the thread that has loaded the code first, and, while some wait, to further threads with modules of their own.
 */
import { type FunctionResponse } from "../function-response.ts";
import { logError } from "../log.ts";
import { RequestError } from "../request-error.ts";
import { type LambdaEvent } from "./lambda-event.ts";

/** One event with what a call of the handler needs. */
export interface LambdaCall {
  event: LambdaEvent;
  /** When its time is over, by `Date.now`. */
  endMs: number;
}

/** Has one event at a time. */
export interface EventPlace {
  isBusy: boolean;
  /** Calls the handler; the place is busy until that has settled, or `leave` is called. */
  run(call: LambdaCall, response: FunctionResponse): Promise<unknown>;
  /** The event's time is over, whatever the handler still does. */
  leave(): void;
}

/** The threads next to the first, as calls need them. */
export interface FurtherThreads {
  readonly places: readonly EventPlace[];
  /** An event waits: another thread is started if one still does in a moment. */
  growSoon(): void;
  close(): Promise<void>;
}

export class EventLine {
  readonly #own: EventPlace;
  readonly #queueLength: number;
  readonly #waiting = new Map<(place: EventPlace | undefined) => void, number>();
  #threads: FurtherThreads | undefined;
  #create: (() => Promise<FurtherThreads>) | undefined;

  constructor(call: (call: LambdaCall) => Promise<unknown>, queueLength: number) {
    this.#queueLength = queueLength;
    this.#own = { isBusy: false, run: call, leave() {} };
  }

  /** For how many milliseconds the first in line has waited; undefined when none waits. */
  get waitsForMs(): number | undefined {
    const [first] = this.#waiting.values();
    return first === undefined ? undefined : Date.now() - first;
  }

  /** Others may run next to the first thread; what starts them is created when an event waits for the first time. */
  addThreads(create: () => Promise<FurtherThreads>): void {
    this.#create = create;
  }

  async #growSoon(): Promise<void> {
    const create = this.#create;
    this.#create = undefined;
    if (create) this.#threads = await create();
    this.#threads?.growSoon();
  }

  /** Calls the handler in turn. Throws a RequestError when too many wait. */
  enter(call: LambdaCall, response: FunctionResponse): Promise<unknown> {
    const place = this.#waiting.size === 0 ? this.#free() : undefined;
    if (place) return this.#run(place, call, response);
    if (this.#waiting.size >= this.#queueLength)
      throw new RequestError(503, "too many requests are waiting for the Function");
    return this.#enterLater(call, response);
  }

  async #enterLater(call: LambdaCall, response: FunctionResponse): Promise<unknown> {
    const place = await new Promise<EventPlace | undefined>((resolve) => {
      const leave = () => turn(undefined);
      const turn = (found: EventPlace | undefined) => {
        this.#waiting.delete(turn);
        response.off("close", leave);
        resolve(found);
      };
      this.#waiting.set(turn, Date.now());
      response.once("close", leave);
      void this.#growSoon();
    });
    return place && (await this.#run(place, call, response));
  }

  #free(): EventPlace | undefined {
    return [this.#own, ...(this.#threads?.places ?? [])].find(({ isBusy }) => !isBusy);
  }

  /** A place has become free. */
  next(): void {
    const [turn] = this.#waiting.keys();
    const place = turn && this.#free();
    if (!place) return;
    // Before another request comes: the turn is taken later.
    place.isBusy = true;
    turn(place);
  }

  async #run(place: EventPlace, call: LambdaCall, response: FunctionResponse): Promise<unknown> {
    place.isBusy = true;
    let isOver = false;
    const settle = () => {
      if (isOver) return;
      isOver = true;
      place.isBusy = false;
      this.next();
    };
    // A client that goes does not end its event; the time limit does.
    const onClose = () => {
      if (isOver) return;
      const left = Math.max(0, call.endMs - Date.now());
      setTimeout(() => {
        if (!isOver) place.leave();
        settle();
      }, left).unref();
    };
    response.once("close", onClose);
    try {
      return await place.run(call, response);
    } finally {
      response.off("close", onClose);
      settle();
    }
  }

  async close(): Promise<void> {
    await this.#threads?.close().catch((error: unknown) => logError("ending threads", error));
  }
}
