import { type Clock, type ObjectKey } from "@spry/kube";
import { type AttemptLimits } from "../attempt/attempt.ts";
import { Backend, type BackendSettings } from "../attempt/backend.ts";
import {
  admissionUnreachable,
  backendUnreachable,
  concurrencyExceeded,
  type ErrorResponse,
  overloaded,
  queueFull,
} from "../http/error-response.ts";
import { type PodsInUse } from "./pods-in-use.ts";
import { type Tally } from "./tally.ts";
import { type Place, type Seeker, WaitingLine } from "./waiting-line.ts";

export interface DestinationSettings extends BackendSettings {
  /** Requests that the gateway gives one Pod at a time; more wait. */
  maxConcurrency: number;
  /** How long a request waits for a place at a Pod, at most. */
  maxWaitMs: number;
  /** Requests that may wait for one destination. */
  maxWaiting: number;
  /** What these requests may take in memory: heads, and what of their bodies has been received. */
  maxWaitingBytes: number;
}

/** What kind of destination it is, as far as requests at it are concerned. */
export interface DestinationPolicy {
  /** `Function default/hello`: what messages call it. */
  name: string;
  /** Requests that its owner lets a Pod handle at a time; undefined where the owner has set no limit. */
  concurrency: number | undefined;
  /** How long a request waits for a place at a Pod; undefined: as long as the gateway allows. */
  maxWaitMs?: number | undefined;
  /** Whether the owner's limit holds for all gateways together (ADR 0030). */
  isExact?: boolean;
  limits?: AttemptLimits | undefined;
  /** How long other addresses are tried after a Pod has refused a connection. */
  unreachablePatienceMs: number;
  /** Asked for when it has no Pod. */
  absence(): Absence;
}

/** Why it has no Pod, and how long a request should wait for one, from its arrival. */
export interface Absence {
  patienceMs: number;
  otherwise: ErrorResponse;
}

/** A change is not looked for more often than this. */
const minReviewMs = 1;
/** With thousands of requests waiting, each with a deadline of its own. */
const crowd = 500;
const crowdedReviewMs = 20;

/**
 * The Pods behind a Service or a Revision, and the requests that wait for a place at one of them. A place is what one
 * request takes at one Pod; it is given back by `release`.
 */
export class Destination {
  readonly key: ObjectKey;
  /** Set where the scaler needs to know about its requests. */
  readonly tally: Tally | undefined;
  policy: DestinationPolicy;
  readonly #settings: DestinationSettings;
  readonly #clock: Clock;
  readonly #line: WaitingLine;
  readonly #pods: PodsInUse | undefined;
  #backends: Backend[] = [];
  /** They are not among the addresses any more, and have requests under way. */
  readonly #leaving = new Map<string, Backend>();
  #reservations: ReadonlyMap<string, number> = new Map();
  #forwards = false;
  /** Where the search for the least loaded begins, so that equals take turns. */
  #turn = 0;
  #cancelReview = () => {};
  #nextReview = Infinity;

  constructor(
    key: ObjectKey,
    policy: DestinationPolicy,
    settings: DestinationSettings,
    clock: Clock,
    tally?: Tally,
    pods?: PodsInUse,
  ) {
    this.key = key;
    this.#pods = pods;
    this.policy = policy;
    this.tally = tally;
    this.#settings = settings;
    this.#clock = clock;
    this.#line = new WaitingLine(settings.maxWaiting, settings.maxWaitingBytes);
  }

  get hasBackends(): boolean {
    return this.#backends.length > 0;
  }
  /** Whether requests go to another gateway, which counts them. */
  get forwards(): boolean {
    return this.#forwards;
  }
  /** Requests that wait for a place. */
  get waiting(): number {
    return this.#line.size;
  }

  /** Whether `take` would find a place. */
  get hasPlace(): boolean {
    return this.#leastLoaded() !== undefined;
  }

  /** A place at the least loaded Pod that has a free one; undefined when there is none. */
  take(): Backend | undefined {
    const backend = this.#leastLoaded();
    if (!backend) return undefined;
    this.#turn = (this.#turn + 1) % this.#backends.length;
    backend.active++;
    return backend;
  }

  /** Gives a place back; the request that has waited longest gets it. */
  release(backend: Backend): void {
    backend.active--;
    if (backend.retired && backend.active === 0) {
      this.#pods?.ended(backend);
      if (this.#leaving.get(backend.address) === backend) this.#leaving.delete(backend.address);
    }
    if (this.#line.size > 0) this.#serve();
  }

  /**
   * Enters the waiting line, which fails when it is full or when waiting is known to be in vain. The request does not get
   * a place before it calls `wait`: its body may still be on its way.
   */
  enter(seeker: Seeker, bytes: number): ErrorResponse | undefined {
    const { patienceMs, otherwise } = this.#outlook();
    if (since(seeker) + patienceMs <= this.#clock.elapsed()) return otherwise;
    const full = this.#line.enter(seeker, bytes);
    return full === undefined ? undefined : queueFull(this.policy.name, full);
  }

  /** Leaves the line, for one that has not been given a place; its `wait` ends with undefined. */
  leave(seeker: Seeker): void {
    this.#line.leave(seeker, undefined);
  }

  /**
   * Resolves with a place, with why there is none, with `moved` when the request should look for its destination again,
   * and with undefined after `leave`.
   */
  wait(seeker: Seeker): Promise<Place> {
    const place = this.#line.wait(seeker);
    const { patienceMs, retryAt } = this.#outlook();
    this.#serve();
    if (this.#line.has(seeker)) this.#reviewAt(Math.min(retryAt, since(seeker) + patienceMs));
    return place;
  }

  /** Places of Pods, by `host:port`, that requests of another gateway take. */
  reserve(reservations: ReadonlyMap<string, number>): void {
    this.#reservations = reservations;
  }

  /**
   * Replaces the addresses; Pods that are still among them keep their connections, and one that comes back has the requests that it
   * had. `isPeer`: it is another gateway's, which admits.
   */
  update(addresses: readonly string[], options: { isH2c?: boolean; isPeer?: boolean } = {}): void {
    const { isH2c = false, isPeer = false } = options;
    const known = new Map(this.#backends.map((backend) => [backend.address, backend]));
    const isSame = (backend: Backend | undefined): backend is Backend =>
      backend?.isH2c === isH2c && backend.isPeer === isPeer;
    this.#forwards = isPeer;
    this.#backends = addresses.map((address) => {
      const backend = known.get(address);
      if (isSame(backend)) {
        known.delete(address);
        return backend;
      }
      const back = this.#leaving.get(address);
      if (isSame(back)) {
        this.#leaving.delete(address);
        back.revive();
        this.#pods?.returned(back);
        return back;
      }
      const created = new Backend(address, this.#settings, this.#clock, { isH2c, isPeer });
      this.#pods?.entered(created);
      return created;
    });
    for (const gone of known.values()) {
      gone.retire();
      this.#pods?.left(gone);
      if (gone.active > 0) this.#leaving.set(gone.address, gone);
    }
    if (known.size > 0 && !this.hasBackends) this.tally?.stranded();
    this.review();
  }

  /** Requests that wait look for their destination again: routes have changed. */
  reroute(): void {
    this.#line.empty("moved");
    this.#noReview();
  }

  close(): void {
    this.update([]);
    this.reroute();
  }

  /** Gives free places to those who wait, and an answer to those who have waited long enough. */
  review(): void {
    this.#noReview();
    if (this.#line.size === 0) return;
    const now = this.#clock.elapsed();
    // Before places are given: a Pod whose suspicion ends in between must not be forgotten.
    const { patienceMs, otherwise, retryAt } = this.#outlook();
    this.#serve();
    let next = retryAt;
    for (const seeker of this.#line.ready()) {
      const until = since(seeker) + patienceMs;
      if (until <= now) this.#line.leave(seeker, otherwise);
      else if (until < next) next = until;
    }
    if (this.#line.size > 0) this.#reviewAt(next);
  }

  /** At that time of the clock, unless a review is due before. */
  #reviewAt(at: number): void {
    if (at >= this.#nextReview) return;
    this.#noReview();
    this.#nextReview = at;
    const pauseMs = this.#line.size > crowd ? crowdedReviewMs : minReviewMs;
    const waitMs = Math.max(pauseMs, at - this.#clock.elapsed());
    this.#cancelReview = this.#clock.after(waitMs, () => this.review());
  }

  #noReview(): void {
    this.#cancelReview();
    this.#nextReview = Infinity;
  }

  #leastLoaded(): Backend | undefined {
    const backends = this.#backends;
    const { maxConcurrency } = this.#settings;
    // A gateway that admits keeps the limit of Pods itself.
    const limit = this.#forwards ? Infinity : (this.policy.concurrency ?? Infinity);
    const max = Math.min(limit, maxConcurrency);
    let best: Backend | undefined;
    for (let i = 0; i < backends.length; i++) {
      const backend = backends[(this.#turn + i) % backends.length];
      if (!backend || backend.isSuspect) continue;
      const reserved = this.#reservations.get(backend.address) ?? 0;
      if (backend.active + reserved >= max) continue;
      if (!best || backend.active < best.active) best = backend;
    }
    return best;
  }

  #serve(): void {
    while (this.#line.hasReady) {
      const backend = this.take();
      if (!backend) return;
      this.#line.serve(backend);
    }
  }

  /** How long waiting is worth while, what to respond afterwards, and when to look again even if nothing changes. */
  #outlook(): Absence & { retryAt: number } {
    const { policy } = this;
    if (this.#backends.length === 0) return { ...policy.absence(), retryAt: Infinity };
    const suspects = this.#backends.filter((backend) => backend.isSuspect);
    if (suspects.length < this.#backends.length) {
      const patienceMs = Math.min(policy.maxWaitMs ?? Infinity, this.#settings.maxWaitMs);
      return { patienceMs, otherwise: this.#busy(), retryAt: earliest(suspects) };
    }
    if (this.#forwards) {
      // Another one will admit instead of it.
      const patienceMs = policy.maxWaitMs ?? this.#settings.maxWaitMs;
      return {
        patienceMs,
        otherwise: admissionUnreachable(policy.name),
        retryAt: earliest(suspects),
      };
    }
    return {
      patienceMs: policy.unreachablePatienceMs,
      otherwise: backendUnreachable(policy.name),
      retryAt: earliest(suspects),
    };
  }

  #busy(): ErrorResponse {
    const { name, concurrency } = this.policy;
    return concurrency !== undefined && concurrency <= this.#settings.maxConcurrency
      ? concurrencyExceeded(name, concurrency)
      : overloaded(name);
  }
}

function earliest(suspects: readonly Backend[]): number {
  return suspects.reduce((at, { suspectUntil }) => Math.min(at, suspectUntil), Infinity);
}

/** Since when a request has had no Pod. */
function since({ arrivedAt, firstFailureAt }: Seeker): number {
  return firstFailureAt || arrivedAt;
}
