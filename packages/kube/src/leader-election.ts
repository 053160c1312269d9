import { type KubeClient } from "./client.ts";
import { type Clock, sleep, systemClock } from "./clock.ts";
import { isAlreadyExists, isConflict, isNotFound, messageOf } from "./errors.ts";
import { type Logger, silentLogger } from "./log.ts";
import { type Lease, resources } from "./resources.ts";

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
}

/** How much longer than the retry period a candidate may pause, so that not all come at once. */
const jitterFactor = 1.2;

/**
 * Waits until this candidate holds the Lease, then runs `lead` for as long as it does. Resolves when
 * `lead` ends or the signal is aborted, giving the Lease back; rejects when the Lease was lost, which
 * a process should take as its end. `lead` is told by its signal and waited for, when the Lease was
 * lost only as long as nobody else can lead.
 */
export async function runAsLeader(
  options: LeaderElectionOptions,
  lead: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const elector = new Elector(options);
  if (!(await elector.acquire(signal))) return;
  const stop = new AbortController();
  const leading = lead(AbortSignal.any([signal, stop.signal])).finally(() => stop.abort());
  // Its failure is thrown below, once the renewing has ended.
  leading.catch(() => {});
  const lost = await elector.renewUntil(AbortSignal.any([signal, stop.signal]));
  stop.abort(lost);
  if (lost) {
    await Promise.race([leading.catch(() => {}), sleep(elector.clock, elector.graceMs)]);
    throw lost;
  }
  try {
    await leading;
  } finally {
    // Only now: until `lead` had ended, nobody else was to start.
    await elector.release();
  }
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
    let renewedAt = this.clock.now();
    while (!signal.aborted) {
      await sleep(this.clock, this.#retryPeriodMs, signal);
      if (signal.aborted) return undefined;
      const deadline = new AbortController();
      const left = renewedAt + this.#renewDeadlineMs - this.clock.now();
      // A request without an answer must not outlive the deadline.
      const cancel = this.clock.after(Math.max(0, left), () => deadline.abort());
      const held = await this.#tryHold(AbortSignal.any([signal, deadline.signal]));
      cancel();
      if (held) renewedAt = this.clock.now();
      else if (signal.aborted) return undefined;
      else if (this.clock.now() - renewedAt >= this.#renewDeadlineMs) {
        return new Error(`leading: lease ${this.#options.name} could not be renewed in time`);
      }
    }
    return undefined;
  }

  /** Empties the Lease, so that the next candidate need not wait for its end. */
  async release(): Promise<void> {
    const lease = this.#lease;
    if (lease?.spec?.holderIdentity !== this.#options.identity) return;
    const now = microTime(this.clock);
    const spec = { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: now };
    try {
      await this.#options.client.update(resources.leases, { ...lease, spec });
    } catch (error) {
      this.#log.warn({ error: messageOf(error) }, "giving the lease back");
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
        this.#observe(await client.create(resources.leases, { metadata, spec }, { signal }));
        return true;
      }
      this.#observe(lease);
      const holder = lease.spec?.holderIdentity;
      if (holder && holder !== identity && !this.#isExpired(lease)) return false;
      const spec = this.#specAfter(lease);
      // The resourceVersion in the metadata makes this a compare-and-swap.
      this.#observe(await client.update(resources.leases, { ...lease, spec }, { signal }));
      return true;
    } catch (error) {
      const level = isConflict(error) || isAlreadyExists(error) ? "debug" : "warn";
      if (!signal.aborted)
        this.#log[level]({ error: messageOf(error) }, "trying to hold the lease");
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

  #observe(lease: Lease): void {
    const spec = JSON.stringify(lease.spec);
    if (spec !== this.#observed.spec) this.#observed = { spec, at: this.clock.now() };
    this.#lease = lease;
  }

  #isExpired(lease: Lease): boolean {
    const durationMs = (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
    return this.clock.now() >= this.#observed.at + durationMs;
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
