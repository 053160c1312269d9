/** The threads that run events next to the first: as many as calls need, memory holds and processors are left for. */
import { logLine } from "../log.ts";
import { type EventLine, type EventPlace, type FurtherThreads } from "./event-line.ts";
import { EventThread } from "./event-thread.ts";
import { ProcessorDemand, roomLeft, threadSize } from "./room-for-threads.ts";

const limits = {
  /** As long as an event may wait for others before another thread is worth its start. */
  growMs: 20,
  idleMs: 60_000,
  /** How many load the code at a time: it takes much of a processor. */
  starting: 2,
  threads: 49,
  /** Where no limit of memory is known. */
  unlimited: 15,
};

export class EventThreads implements FurtherThreads {
  readonly #line: EventLine;
  readonly #directory: string;
  readonly #demand = new ProcessorDemand();
  #ready: EventThread[] = [];
  #all = new Set<EventThread>();
  #looks = false;
  #cannotLoad = false;
  #isClosing = false;

  /** `directory`: of the Function's code, which each of them loads. */
  constructor(line: EventLine, directory: string) {
    this.#line = line;
    this.#directory = directory;
    setInterval(() => this.#endIdle(), limits.idleMs / 4).unref();
  }

  get places(): readonly EventPlace[] {
    return this.#ready;
  }

  growSoon(): void {
    if (this.#looks || this.#cannotLoad || this.#isClosing) return;
    this.#looks = true;
    setTimeout(() => this.#grow(), limits.growMs).unref();
  }

  #grow(): void {
    this.#looks = false;
    const leavesOne = this.#demand.leavesOne();
    const waitsMs = this.#line.waitsForMs;
    if (waitsMs === undefined) return;
    if (leavesOne && waitsMs >= limits.growMs && this.#hasRoom()) void this.#start();
    this.growSoon();
  }

  /** For one more, next to those that are on their way, and as much again for the events of all. */
  #hasRoom(): boolean {
    const starting = this.#all.size - this.#ready.length;
    if (starting >= limits.starting) return false;
    const left = roomLeft();
    if (this.#all.size >= (left === Infinity ? limits.unlimited : limits.threads)) return false;
    return left >= (starting + 2) * threadSize();
  }

  async #start(): Promise<void> {
    const thread = new EventThread(this.#directory);
    this.#all.add(thread);
    thread.onEnd = () => {
      this.#all.delete(thread);
      this.#ready = this.#ready.filter((each) => each !== thread);
    };
    try {
      await thread.ready;
    } catch {
      // The thread itself has said why. What cannot be loaded twice never can.
      if (!this.#cannotLoad && !this.#isClosing)
        logLine("loading the code in a further thread failed: events wait for the first one");
      this.#cannotLoad = true;
      return;
    }
    if (this.#isClosing) return void thread.end();
    this.#ready.push(thread);
    this.#line.next();
  }

  #endIdle(): void {
    const due = Date.now() - limits.idleMs;
    for (const thread of this.#ready.filter((each) => !each.isBusy && each.usedMs < due)) {
      this.#ready = this.#ready.filter((each) => each !== thread);
      void thread.end();
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#all].map((thread) => thread.end()));
  }
}
