import { type KubeClient } from "./client.ts";
import { type Clock, sleep, systemClock } from "./clock.ts";
import { isAlreadyExists, isConflict, isNotFound, messageOf } from "./errors.ts";
import { type Logger, silentLogger } from "./log.ts";
import { type Lease, resources } from "./resources.ts";
import { transportOf } from "./transport.ts";

export interface LeaderElectionOptions {
  client: KubeClient;
  /** Of the Lease. */
  namespace: string;
  name: string;
  /** Unique among the candidates: a Pod's name, say. */
  identity: string;
  /** How long a leader that is not heard of stays leader. */
  leaseDurationMs?: number;
  /** How long a leader tries to renew before it steps down; shorter than the lease. */
  renewDeadlineMs?: number;
  retryPeriodMs?: number;
  clock?: Clock;
  log?: Logger;
  /** From 0 to 1, for jitter. */
  random?: () => number;
  /** Called when this candidate begins and ceases to lead. */
  onChange?: (leads: boolean) => void;
}

/** How much longer than the retry period a candidate may pause, so that not all come at once. */
const jitterFactor = 1.2;
/** For reading the Lease before it is given back. */
const releaseMs = 5_000;

/**
 * Waits until this candidate holds the Lease, then runs `lead` for as long as it does. Resolves when
 * `lead` ends, giving the Lease back: until then, also after the signal was aborted, it is renewed.
 * Rejects when the Lease was lost, after which a process should end. `lead` is notified by its signal and
 * awaited; if the Lease was lost, only until another candidate can lead.
 *
 * What `lead` does goes through the client that it is given: its writes are refused from the renew
 * deadline on, so that a leader which was cut off or stood still writes nothing after its successor. What else
 * only a leader may do asks `isHeld` first.
 */
export async function runAsLeader(
  options: LeaderElectionOptions,
  lead: (signal: AbortSignal, client: KubeClient, isHeld: () => boolean) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const elector = new Elector(options);
  if (!(await elector.acquire(signal))) return;
  options.onChange?.(true);
  try {
    const lost = new AbortController();
    const ended = new AbortController();
    const client = fenced(options.client, elector, lost.signal);
    const isHeld = () => elector.isHeld;
    const leading = lead(AbortSignal.any([signal, lost.signal]), client, isHeld).finally(() =>
      ended.abort(),
    );
    // Its failure is thrown below, once the renewing has ended.
    leading.catch(() => {});
    const loss = await elector.renewUntil(ended.signal);
    if (loss) {
      lost.abort(loss);
      await Promise.race([leading.catch(() => {}), sleep(elector.clock, elector.graceMs)]);
      throw loss;
    }
    try {
      await leading;
    } finally {
      // Only now: no other candidate may start before `lead` has ended.
      await elector.release();
    }
  } finally {
    options.onChange?.(false);
  }
}

/** The client, with writes only while the Lease is surely held; those under way end with it. */
function fenced(client: KubeClient, elector: Elector, lost: AbortSignal): KubeClient {
  return client.through((transport) => {
    const { ask } = transport;
    const send = async (request: Request) => {
      if (request.method === "GET") return transport(request);
      elector.assertHeld();
      const signal = AbortSignal.any([request.signal, lost]);
      return transport(new Request(request, { signal }));
    };
    if (!ask) return send;
    return transportOf(send, async (request) => {
      if (request.method === "GET") return ask(request);
      elector.assertHeld();
      const signal = request.signal ? AbortSignal.any([request.signal, lost]) : lost;
      return ask({ ...request, signal });
    });
  });
}

/**
 * client-go's algorithm. Other candidates' clocks are never looked at: a Lease counts as expired
 * when it has not changed, by our own clock, for its duration.
 */
class Elector {
  readonly clock: Clock;
  readonly #options: LeaderElectionOptions;
  readonly #log: Logger;
  readonly #durationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  #observed: { spec: string; at: number } = { spec: "", at: 0 };
  #lease: Lease | undefined;
  /** Others count from when they see a renewal, which is after it was sent: so do we, from then. */
  #renewed = { elapsed: -Infinity, now: -Infinity };

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.clock = options.clock ?? systemClock;
    this.#log = (options.log ?? silentLogger).child({ lease: options.name });
    this.#durationMs = options.leaseDurationMs ?? 15_000;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryPeriodMs = options.retryPeriodMs ?? 2_000;
    if (this.#durationMs <= this.#renewDeadlineMs || this.#renewDeadlineMs <= this.#retryPeriodMs) {
      throw new Error(
        "electing a leader: the lease must last longer than the renew deadline, " +
          "and that longer than the retry period",
      );
    }
  }

  /** From giving up the renewal to the moment that others take the Lease. */
  get graceMs(): number {
    return this.#durationMs - this.#renewDeadlineMs;
  }

  /** False when the signal was aborted before. */
  async acquire(signal: AbortSignal): Promise<boolean> {
    const random = this.#options.random ?? Math.random;
    while (!signal.aborted) {
      if (await this.#tryHold(signal)) {
        this.#log.info({ identity: this.#options.identity }, "became leader");
        return true;
      }
      await sleep(this.clock, this.#retryPeriodMs * (1 + random() * jitterFactor), signal);
    }
    return false;
  }

  /** Renews until the signal is aborted; the error when that did not work for too long. */
  async renewUntil(signal: AbortSignal): Promise<Error | undefined> {
    while (!signal.aborted) {
      await sleep(this.clock, this.#retryPeriodMs, signal);
      if (signal.aborted) return undefined;
      const deadline = new AbortController();
      const left = this.#renewed.elapsed + this.#renewDeadlineMs - this.clock.elapsed();
      // A request without an answer must not outlive the deadline.
      const cancel = this.clock.after(Math.max(0, left), () => deadline.abort());
      await this.#tryHold(AbortSignal.any([signal, deadline.signal]));
      cancel();
      if (signal.aborted) return undefined;
      if (!this.isHeld) return new Error(`leading: ${this.#overdue}`);
    }
    return undefined;
  }

  /** Throws when the last renewal is so long ago that others may soon lead. */
  assertHeld(): void {
    if (!this.isHeld) throw new Error(`refusing to write: ${this.#overdue}`);
  }

  get isHeld(): boolean {
    // A machine that has slept has a clock that went on, and a time that did not: whichever says more counts.
    const { elapsed, now } = this.#renewed;
    const ms = Math.max(this.clock.elapsed() - elapsed, this.clock.now() - now);
    return ms < this.#renewDeadlineMs;
  }

  get #overdue(): string {
    return `lease ${this.#options.name} could not be renewed in time`;
  }

  /** Empties the Lease, so that the next candidate need not wait for its end. */
  async release(): Promise<void> {
    if (this.#lease?.spec?.holderIdentity !== this.#options.identity) return;
    try {
      // The leader may have written to its metadata.
      const lease = await this.#read(AbortSignal.timeout(releaseMs));
      if (lease?.spec?.holderIdentity !== this.#options.identity) return;
      const now = microTime(this.clock);
      const spec = { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: now };
      await this.#options.client.update(resources.leases, { ...lease, spec });
    } catch (error) {
      this.#log.warn({ error: messageOf(error) }, "releasing the lease");
    }
  }

  /** One attempt to become, or stay, the holder. Every failure is a no. */
  async #tryHold(signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name, identity } = this.#options;
    try {
      const lease = await this.#read(signal);
      if (!lease) {
        const spec = this.#specAfter(undefined);
        const metadata = { namespace, name };
        const sent = this.#times();
        this.#observe(await client.create(resources.leases, { metadata, spec }, { signal }));
        this.#renewed = sent;
        return true;
      }
      this.#observe(lease);
      const holder = lease.spec?.holderIdentity;
      if (holder && holder !== identity && !this.#isExpired(lease)) return false;
      const spec = this.#specAfter(lease);
      const sent = this.#times();
      // The resourceVersion in the metadata makes this a compare-and-swap.
      this.#observe(await client.update(resources.leases, { ...lease, spec }, { signal }));
      this.#renewed = sent;
      return true;
    } catch (error) {
      const level = isConflict(error) || isAlreadyExists(error) ? "debug" : "warn";
      if (!signal.aborted)
        this.#log[level]({ error: messageOf(error) }, "acquiring or renewing the lease");
      return false;
    }
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, namespace, name } = this.#options;
    try {
      return await client.get(resources.leases, { namespace, name, signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  #times() {
    return { elapsed: this.clock.elapsed(), now: this.clock.now() };
  }

  #observe(lease: Lease): void {
    const spec = JSON.stringify(lease.spec);
    if (spec !== this.#observed.spec) this.#observed = { spec, at: this.clock.elapsed() };
    this.#lease = lease;
  }

  #isExpired(lease: Lease): boolean {
    const durationMs = (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
    return this.clock.elapsed() >= this.#observed.at + durationMs;
  }

  #specAfter(lease: Lease | undefined): NonNullable<Lease["spec"]> {
    const { identity } = this.#options;
    const now = microTime(this.clock);
    const before = lease?.spec;
    const isRenewal = before?.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#durationMs / 1000),
      acquireTime: isRenewal ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (before && !isRenewal ? 1 : 0),
    };
  }
}

/** `metav1.MicroTime`. */
function microTime(clock: Clock): string {
  return new Date(clock.now()).toISOString().replace("Z", "000Z");
}
