import { type ObjectKey } from "@spry/kube";
import { type Destination } from "../activation/destination.ts";
import { type Seeker } from "../activation/waiting-line.ts";
import { Backend } from "../attempt/backend.ts";
import { type Admitted } from "../admission/admission.ts";
import { admittedHere } from "../admission/peer-requests.ts";
import { type ErrorResponse, outOfMemory } from "../http/error-response.ts";
import { type Outcome, pass, routeFilters, routeOf } from "./filters.ts";
import { type Passage, type RequestDeps } from "./passage.ts";
import { heldBytes, type RequestBody } from "./request-body.ts";

export type HeldBody = Buffer | RequestBody | undefined;

/**
 * One request's place at a Pod: takes a free one of its destination, or waits for one, follows routes that change meanwhile,
 * and gives the place back. It counts the request where the scaler reads it.
 */
export class Placement implements Seeker {
  readonly arrivedAt: number;
  firstFailureAt = 0;
  readonly #deps: RequestDeps;
  readonly #passage: Passage;
  #destination: Destination;
  /** The Pod at which it has a place. */
  #backend: Backend | undefined;
  /** Of the memory budget, in its route's name: what it holds while it waits. */
  #lineBytes = 0;
  /** Whether it had to wait for a Pod to start, and how long. */
  #isCold = false;
  #coldMs = 0;
  #isOver = false;
  /** As what the scaler's tally has it here; undefined: another gateway counts it. */
  #counted: "waiting" | "active" | undefined;
  #admitted: Admitted | undefined;

  constructor(deps: RequestDeps, passage: Passage, destination: Destination) {
    this.#deps = deps;
    this.#passage = passage;
    this.#destination = destination;
    this.arrivedAt = deps.clock.elapsed();
  }

  get destination(): Destination {
    return this.#destination;
  }

  /** How long it has waited for a Pod to start; undefined if it did not have to. */
  get coldMs(): number | undefined {
    return this.#isCold ? this.#coldMs : undefined;
  }

  arrive(): void {
    const { tally, hasBackends, forwards } = this.#destination;
    if (!tally || forwards || this.#counted) return;
    this.#counted = "waiting";
    tally.arrived(!hasBackends);
  }

  /** Enters the waiting line of its destination; returns why that cannot be. `heldBodyBytes` of its body are counted already. */
  enter(body: HeldBody, heldBodyBytes: number): ErrorResponse | undefined {
    this.#isCold ||= !this.#destination.hasBackends && this.firstFailureAt === 0;
    const bytes = heldBytes(this.#passage.request, body);
    return this.#destination.enter(this, bytes) ?? this.#hold(bytes - heldBodyBytes);
  }

  /** A place that is free now. */
  take(): Backend | undefined {
    return this.#destination.take();
  }

  /**
   * Waits for a place. Resolves with why there is none to wait for, and with undefined when the request has
   * ended. `heldBodyBytes` is asked each time that it enters a line.
   */
  async wait(
    body: HeldBody,
    heldBodyBytes: () => number,
  ): Promise<Backend | ErrorResponse | undefined> {
    const { metrics } = this.#deps;
    while (!this.#isOver) {
      const error = this.enter(body, heldBodyBytes());
      if (error) return error;
      metrics.waiting++;
      const place = await this.#destination.wait(this).finally(() => metrics.waiting--);
      if (place === "moved") {
        if (this.#isOver) return undefined;
        const outcome = this.follow();
        if (outcome) return outcome === "handled" ? undefined : outcome;
        // What another gateway has counted so far may be this one's to count.
        this.arrive();
        const free = this.take();
        if (free) return free;
      } else {
        if (!(place instanceof Backend) || !this.#isOver) return place;
        this.#destination.release(place);
      }
    }
    return undefined;
  }

  /** Routes may have changed since it has chosen its destination. Returns why it has none any more. */
  follow(): Outcome {
    const isPeer = this.#passage.peerRevision !== undefined;
    const route = isPeer ? undefined : routeOf(this.#passage, this.#deps.routes);
    if (route?.leadsTo(this.#destination) === true) return undefined;
    const outcome = isPeer
      ? admittedHere(this.#passage, this.#deps)
      : pass(routeFilters, this.#passage, this.#deps);
    if (outcome) return outcome;
    const { destination } = this.#passage;
    if (!destination) return "handled";
    if (destination !== this.#destination) {
      this.#destination.leave(this);
      this.#countOut();
      this.#destination = destination;
      this.arrive();
    }
    return undefined;
  }

  /** The request is about to be sent to the Pod: at once, or once that has resolved with true; with false, `lose` it. */
  occupy(backend: Backend): Promise<boolean> | undefined {
    this.#backend = backend;
    // It may have entered the line, and found a place without waiting.
    this.#destination.leave(this);
    this.#letGo();
    if (backend.isPeer) this.#countOut();
    else {
      this.arrive();
      if (this.#counted) this.#destination.tally?.started();
      this.#counted &&= "active";
    }
    if (this.#isCold && this.#coldMs === 0) this.#warmedUp();
    const { policy, key } = this.#destination;
    const isShared = policy.isExact === true && !backend.isPeer;
    this.#admitted = isShared ? this.#deps.admission?.begin(key, backend.address) : undefined;
    return this.#admitted?.cleared;
  }

  /** The Pod has failed the request, before that was sent or afterwards; false when it had no place at one. */
  lose(wasSent: boolean): boolean {
    this.firstFailureAt ||= this.#deps.clock.elapsed();
    const backend = this.#backend;
    if (!backend) return false;
    if (!wasSent) backend.suspect();
    this.#backend = undefined;
    this.#admitted?.end();
    this.#destination.release(backend);
    if (this.#counted) {
      this.#destination.tally?.stopped(!this.#destination.hasBackends);
      this.#counted = "waiting";
    } else this.arrive();
    return true;
  }

  /** The request has ended. */
  end(): void {
    this.#isOver = true;
    this.#letGo();
    this.#admitted?.end();
    if (this.#backend) this.#destination.release(this.#backend);
    else this.#destination.leave(this);
    this.#countOut();
    this.#backend = undefined;
  }

  #countOut(): void {
    if (this.#counted) this.#destination.tally?.ended(this.#counted === "active");
    this.#counted = undefined;
  }

  /** While it waits. */
  #hold(bytes: number): ErrorResponse | undefined {
    const more = Math.max(0, bytes - this.#lineBytes);
    if (!this.#deps.memory.take(this.#owner, more)) {
      return outOfMemory(this.#destination.policy.name);
    }
    this.#lineBytes += more;
    return undefined;
  }

  #letGo(): void {
    this.#deps.memory.give(this.#owner, this.#lineBytes);
    this.#lineBytes = 0;
  }

  /** Of its memory. A route's key stays, even when the route changes. */
  get #owner(): ObjectKey {
    return this.#passage.key;
  }

  #warmedUp(): void {
    const { metrics, clock } = this.#deps;
    this.#coldMs = clock.elapsed() - this.arrivedAt;
    const { route } = this.#passage;
    if (!route) return;
    const revision = route.isKnative ? this.#destination.key : undefined;
    metrics.coldStarted(route.key, revision, this.#coldMs / 1000);
  }
}
