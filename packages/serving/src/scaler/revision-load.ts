import { type CountsLine } from "@spry/function";
import { LoadHistory } from "./load-history.ts";

/** Gateways push a change within this time. */
const pushEveryMs = 1_000;
/** On a busy machine a line may be late: until so long after the one before, none was missed. */
const lateMs = 3_000;

/** More than this between two clocks is not a delay: one of them was set. */
const clockSetMs = 5_000;

/** The newest line of one gateway, and the time of it by the scaler's clock. */
interface Newest {
  line: CountsLine;
  arrivedAt: number;
  /** From the gateway's clock to the scaler's: that of the line that was the least late. */
  offset: number;
  /** By the gateway's clock: its first line since it is known what happens. */
  first: number | undefined;
}

/**
 * The load of one Revision from what all gateways say of it. Totals that grow say what happened between two lines; until the
 * next one, what was under way is taken to go on.
 */
export class RevisionLoad {
  #history: LoadHistory;
  readonly #gateways = new Map<string, Newest>();

  constructor(windowMs: number) {
    this.#history = new LoadHistory(windowMs);
  }

  /** Another window begins with nothing known. */
  resize(windowMs: number, now: number): void {
    if (this.#history.windowMs === windowMs) return;
    this.#history = new LoadHistory(windowMs);
    this.reset(now);
  }

  /** Requests that are under way or wait, at all gateways. */
  get current(): number {
    let sum = 0;
    for (const { line } of this.#gateways.values()) sum += line.active + line.waiting;
    return sum;
  }

  get waiting(): number {
    let sum = 0;
    for (const { line } of this.#gateways.values()) sum += line.waiting;
    return sum;
  }

  /** From now on it is known what happens, also if that is nothing. */
  begin(now: number): void {
    this.#history.begin(now);
  }

  /** After idle times, the next burst is compared with itself only. */
  reset(now: number): void {
    this.#history.reset(now);
    for (const newest of this.#gateways.values()) newest.first = undefined;
  }

  /** `source` is the connection that the line came over. A line that is older than its predecessor is passed over. */
  take(source: string, line: CountsLine, now: number): void {
    const last = this.#gateways.get(source);
    let offset = now - line.at;
    let at = now;
    let first = line.at;
    if (last && last.line.gateway === line.gateway) {
      const passed = line.at - last.line.at;
      if (passed < 0) return;
      // Of two lines, the one that was less late says how the clocks stand to each other.
      if (offset > last.offset && offset < last.offset + clockSetMs) offset = last.offset;
      at = line.at + offset;
      first = last.first ?? line.at;
      const load = Math.max(0, line.load - last.line.load);
      const requests = Math.max(0, line.requests - last.line.requests);
      // What was under way went on; the rest is new. After a pause, what is new is of the last moment.
      const kept = Math.min(load, (last.line.active + last.line.waiting) * passed);
      const newMs = passed > lateMs ? pushEveryMs : passed;
      // Where the lines before were later than this one, all that they said was a little earlier.
      const from = Math.min(at, Math.max(at - passed, last.arrivedAt));
      const share = passed > 0 ? (at - from) / passed : 1;
      this.#history.add(from, at, kept * share, 0);
      const begun = first + offset;
      if (share < 1 && begun > at - this.#history.windowMs)
        this.#history.add(begun, begun + last.offset - offset, kept * (1 - share), 0);
      this.#history.add(at - newMs, at, load - kept, requests);
    } else {
      // Nothing is known of the time before the first line, but what it shows has begun.
      this.#history.add(now, now, 0, last ? line.requests : 0);
    }
    this.#history.knownFrom(first + offset);
    this.#gateways.set(source, { line, arrivedAt: at, offset, first });
  }

  /** A gateway that is gone has nothing under way. */
  drop(source: string, now: number): void {
    const last = this.#gateways.get(source);
    if (!last) return;
    this.#gateways.delete(source);
    const passed = now - last.arrivedAt;
    this.#history.add(last.arrivedAt, now, (last.line.active + last.line.waiting) * passed, 0);
  }

  /** Averages of the window that ends now. */
  average(now: number, windowMs: number): { concurrency: number; rps: number } {
    const { load, requests, knownMs } = this.#history.sums(now, windowMs);
    let since = 0;
    for (const { line, arrivedAt } of this.#gateways.values())
      since += (line.active + line.waiting) * Math.min(knownMs, now - arrivedAt);
    const concurrency = rounded((load + since) / knownMs);
    return { concurrency, rps: rounded((requests * 1000) / knownMs) };
  }
}

/** Six digits, as Knative rounds: what is left of sums is not a request. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
