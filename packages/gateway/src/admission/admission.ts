import { randomUUID } from "node:crypto";
import { type Socket } from "node:net";
import { type Clock, isSameSecret, type KubeClient, type Logger, type ObjectKey } from "@spry/kube";
import { type TokenSource } from "../metrics/bearer-access.ts";
import { AdmissionLease, type Holder } from "./admission-lease.ts";
import { Inheritance } from "./inheritance.ts";
import { type Entry } from "./ledger.ts";
import { Witness } from "./witness.ts";
import { Witnesses } from "./witnesses.ts";

/** How several gateways keep hard limits together (ADR 0030). */
export interface AdmissionOptions {
  /** Of the Lease. */
  namespace: string;
  /** `host:port` at which other gateways reach what `listen` and `listenAdmin` listen on. */
  front: string;
  admin: string;
  /** How long a gateway that is not heard of keeps others from admitting; 8 s by default. */
  leaseDurationMs?: number;
}

export interface AdmissionDeps {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  token: TokenSource | undefined;
  /** Every Pod with a hard limit that there is now: what a predecessor may have used. */
  limitedPods: () => Iterable<{ revision: ObjectKey; pod: string; concurrency: number }>;
  timeoutMsOf: (revision: ObjectKey) => number;
  /** The scaler counts requests of a predecessor that no longer exists to report them. */
  counted: (revision: ObjectKey, change: number) => void;
  /** Where requests to limited Revisions go has changed, for all or for one of them. */
  changed: (revision?: ObjectKey) => void;
}

/** Where requests with a hard limit go: to Pods, to the gateway that admits, or nowhere yet. */
export type AdmissionPlace = "own" | { peer: string } | undefined;

/** One request's entry among those that are under way. */
export interface Admitted {
  /** Resolves with whether it may be sent; undefined: it may, now. */
  cleared: Promise<boolean> | undefined;
  end(): void;
}

export const admissionLeaseName = "serverless-gateway-admission";
const defaultDurationMs = 8_000;

/**
 * One gateway admits requests to Revisions with a hard limit, and all others forward theirs to it. Before it sends a
 * request to a Pod, all others know of it: its successor counts what it has under way until that has ended, or its
 * time is up.
 */
export class Admission {
  readonly #deps: AdmissionDeps;
  readonly #identity = randomUUID();
  readonly #lease: AdmissionLease;
  readonly #witnesses: Witnesses;
  readonly #inheritance: Inheritance;
  readonly #own = new Map<string, Entry>();
  #witness: Witness | undefined;
  readonly #listening = new Set<Witness>();
  #holder: Holder | undefined;
  #isHeld: (() => boolean) | undefined;
  #token: string | undefined;
  #lastId = 0;

  constructor(deps: AdmissionDeps, options: AdmissionOptions) {
    this.#deps = deps;
    const { client, clock, log, counted, changed, timeoutMsOf } = deps;
    this.#inheritance = new Inheritance({
      clock,
      timeoutMsOf,
      counted,
      onEnd: ({ id, revision }) => {
        this.#witnesses.end(id);
        changed(revision);
      },
    });
    this.#witnesses = new Witnesses({
      clock,
      log,
      underWay: () => [...this.#own.values(), ...this.#inheritance.entries()],
      record: (identities) => this.#lease.record(identities),
      isHeld: () => this.#isHeld?.() === true,
    });
    this.#lease = new AdmissionLease({
      client,
      clock,
      log,
      namespace: options.namespace,
      name: admissionLeaseName,
      identity: this.#identity,
      front: options.front,
      admin: options.admin,
      durationMs: options.leaseDurationMs ?? defaultDurationMs,
      onHolder: (holder) => this.#follow(holder),
      onHeld: (...held) => this.#held(...held),
    });
  }

  /** Ends when the signal is aborted: from then on another gateway admits. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#readToken();
    await this.#lease.run(signal);
  }

  /** What is under way is not reported any more. */
  async close(): Promise<void> {
    const isIdle = this.#own.size === 0 && this.#inheritance.isEmpty;
    for (const witness of this.#listening) witness.close();
    this.#witnesses.close();
    this.#inheritance.close();
    if (isIdle) await this.#lease.forget();
  }

  get place(): AdmissionPlace {
    if (this.#isHeld?.()) return "own";
    const holder = this.#holder;
    return holder && holder.identity !== this.#identity && this.#token !== undefined
      ? { peer: holder.front }
      : undefined;
  }

  /** Whether that is what other gateways have to show. */
  isToken(given: unknown): boolean {
    const token = this.#token;
    return token !== undefined && typeof given === "string" && isSameSecret(given, token);
  }

  /** What a request to the gateway that admits has to show. */
  get token(): string {
    return this.#token ?? "";
  }

  /** Places that requests of a predecessor take, by `host:port`. */
  reservationsOf(revision: ObjectKey): ReadonlyMap<string, number> {
    return this.#inheritance.placesOf(revision);
  }

  /** A request has got a place at a Pod. */
  begin(revision: ObjectKey, pod: string): Admitted {
    const id = `${this.#identity}/${++this.#lastId}`;
    const entry = { id, revision, pod, places: 1 };
    this.#own.set(id, entry);
    const isHeld = this.#isHeld;
    const told = isHeld?.() ? this.#witnesses.begin(entry) : Promise.resolve(false);
    return {
      // The process may have stood still meanwhile.
      cleared: told?.then((isCleared) => isCleared && isHeld?.() === true),
      end: () => {
        this.#own.delete(id);
        this.#witnesses.end(id);
      },
    };
  }

  get mayListen(): boolean {
    return this.#isHeld !== undefined;
  }

  /** Another gateway is to know what is under way here, as long as its connection lasts. */
  listen(identity: string, socket: Socket): void {
    this.#witnesses.add(identity, socket);
  }

  #held(predecessor: Holder | undefined, isHeld: () => boolean, signal: AbortSignal): void {
    const { log, limitedPods, changed } = this.#deps;
    const witness = this.#witness?.identity === predecessor?.identity ? this.#witness : undefined;
    const isOwn = predecessor?.identity === this.#identity;
    const knows = witness !== undefined && predecessor?.witnesses.includes(this.#identity);
    this.#witnesses.restart();
    if (knows) {
      const reporter = witness.isHearing ? witness.identity : undefined;
      // Its own requests of an earlier time have places as it is.
      const others = witness.succeed().filter(({ id }) => !id.startsWith(`${this.#identity}/`));
      this.#inheritance.take(others, reporter);
    } else if (predecessor && !isOwn) {
      // It may have used every place that there is.
      const all = [...limitedPods()].map(({ revision, pod, concurrency }) => ({
        id: `${this.#identity}/${++this.#lastId}`,
        revision,
        pod,
        places: concurrency,
      }));
      this.#inheritance.take(all, undefined);
    }
    log.info(
      { predecessor: predecessor?.identity, knows },
      "this gateway admits requests to Revisions with a hard limit",
    );
    this.#isHeld = isHeld;
    signal.addEventListener("abort", () => {
      this.#isHeld = undefined;
      this.#witnesses.refuseAll();
      changed();
    });
    changed();
  }

  #follow(holder: Holder | undefined): void {
    this.#holder = holder;
    if (holder && holder.identity !== this.#identity && holder.identity !== this.#witness?.identity)
      this.#watch(holder);
    this.#deps.changed();
  }

  #watch(predecessor: Holder): void {
    const { clock, log } = this.#deps;
    // One that this gateway has succeeded may still report what has ended.
    if (this.#witness?.isFinal === false) this.#forget(this.#witness);
    const witness: Witness = new Witness({
      predecessor,
      identity: this.#identity,
      token: () => this.#readToken(),
      clock,
      log,
      onEnd: (id) => this.#inheritance.end(id),
      onSilence: () => {
        this.#inheritance.silent(witness.identity);
        if (witness.isFinal) this.#forget(witness);
      },
    });
    this.#witness = witness;
    this.#listening.add(witness);
  }

  #forget(witness: Witness): void {
    witness.close();
    this.#listening.delete(witness);
  }

  async #readToken(): Promise<string | undefined> {
    const before = this.#token;
    try {
      this.#token = (await this.#deps.token?.()) || this.#token;
    } catch {
      // The next connection asks again.
    }
    if (this.#token !== before) this.#deps.changed();
    return this.#token;
  }
}
