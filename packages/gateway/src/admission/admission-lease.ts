import {
  type Clock,
  Informer,
  isConflict,
  type KubeClient,
  type Lease,
  type Logger,
  messageOf,
  resources,
  runAsLeader,
  sleep,
} from "@spry/kube";

/** Who admits, as the Lease says. */
export interface Holder {
  identity: string;
  /** `host:port` at which other gateways send it requests, and of its administrative port. */
  front: string;
  admin: string;
  /** Gateways that know everything that it has under way. */
  witnesses: readonly string[];
}

export interface AdmissionLeaseOptions {
  client: KubeClient;
  namespace: string;
  name: string;
  identity: string;
  front: string;
  admin: string;
  durationMs: number;
  clock: Clock;
  log: Logger;
  /** The Lease names another gateway, or another place of it. */
  onHolder: (holder: Holder | undefined) => void;
  /**
   * This gateway admits from now on until the signal is aborted, and as long as `isHeld`: others may soon when that is false. `predecessor`
   * is who has admitted last.
   */
  onHeld: (predecessor: Holder | undefined, isHeld: () => boolean, signal: AbortSignal) => void;
}

const annotation = "serving.spry.io/admission";
const maxConflicts = 10;
const againMs = 250;

/** The Lease by which one of several gateways admits requests to Revisions with a hard limit. */
export class AdmissionLease {
  readonly #options: AdmissionLeaseOptions;
  /** What writes go through as long as it is held. */
  #fenced: KubeClient | undefined;
  #shown = "";

  constructor(options: AdmissionLeaseOptions) {
    this.#options = options;
  }

  /** Ends when the signal is aborted, and the Lease has been given back. */
  async run(signal: AbortSignal): Promise<void> {
    const { client, namespace, name, identity, clock, log, durationMs } = this.#options;
    const informer = new Informer(client, resources.leases, {
      namespace,
      fieldSelector: `metadata.name=${name}`,
      clock,
      log,
    });
    informer.onChange(({ type, object }) => this.#see(type === "deleted" ? undefined : object));
    const watching = informer.run(signal);
    while (!signal.aborted) {
      try {
        await runAsLeader(
          {
            client,
            namespace,
            name,
            identity,
            clock,
            log,
            leaseDurationMs: durationMs,
            renewDeadlineMs: durationMs * 0.7,
            retryPeriodMs: durationMs / 6,
          },
          (leading, fenced, isHeld) => this.#hold(leading, fenced, isHeld),
          signal,
        );
      } catch (error) {
        log.warn(
          { error: messageOf(error) },
          "another gateway admits requests to Revisions with a hard limit now",
        );
      }
      await sleep(clock, againMs, signal);
    }
    await watching;
  }

  /** Writes down who knows everything that is under way; false when this gateway does not hold the Lease any more. */
  async record(witnesses: readonly string[]): Promise<boolean> {
    const client = this.#fenced;
    if (!client) return false;
    const { namespace, name, identity, front, admin, log } = this.#options;
    const value: Holder = { identity, front, admin, witnesses };
    for (let attempt = 0; attempt < maxConflicts; attempt++) {
      try {
        const lease = await client.get(resources.leases, { namespace, name });
        // The version in its metadata makes this a compare-and-swap.
        if (lease.spec?.holderIdentity !== identity) return false;
        const annotations = { ...lease.metadata.annotations, [annotation]: JSON.stringify(value) };
        const metadata = { ...lease.metadata, annotations };
        await client.update(resources.leases, { ...lease, metadata });
        return true;
      } catch (error) {
        if (isConflict(error)) continue;
        log.warn(
          { error: messageOf(error) },
          "recording in the Lease which gateways know of all requests failed",
        );
        if (this.#fenced !== client) return false;
        await sleep(this.#options.clock, againMs);
      }
    }
    return false;
  }

  /** For one that has given the Lease back and has nothing under way any more: no successor has to reckon with it. */
  async forget(): Promise<void> {
    const { client, namespace, name, identity, log } = this.#options;
    try {
      const lease = await client.get(resources.leases, { namespace, name });
      if (lease.spec?.holderIdentity || holderIn(lease)?.identity !== identity) return;
      const { [annotation]: _, ...annotations } = lease.metadata.annotations ?? {};
      await client.update(resources.leases, {
        ...lease,
        metadata: { ...lease.metadata, annotations },
      });
    } catch (error) {
      log.debug({ error: messageOf(error) }, "removing this gateway from the Lease failed");
    }
  }

  async #hold(signal: AbortSignal, client: KubeClient, isHeld: () => boolean): Promise<void> {
    const { namespace, name, onHeld } = this.#options;
    const lease = await client.get(resources.leases, { namespace, name });
    const predecessor = holderIn(lease);
    this.#fenced = client;
    try {
      // First: who comes next has to know whose requests are under way.
      if (signal.aborted || !(await this.record([]))) return;
      onHeld(predecessor, isHeld, signal);
      if (!signal.aborted)
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    } finally {
      this.#fenced = undefined;
    }
  }

  #see(lease: Lease | undefined): void {
    const holder = lease && holderIn(lease);
    const current = holder?.identity === lease?.spec?.holderIdentity ? holder : undefined;
    const shown = current ? `${current.identity} ${current.front} ${current.admin}` : "";
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#options.onHolder(current);
  }
}

function holderIn({ metadata }: Lease): Holder | undefined {
  try {
    const text = metadata.annotations?.[annotation];
    const { identity, front, admin, witnesses } = JSON.parse(text ?? "null") as Partial<Holder>;
    if (![identity, front, admin].every((each) => typeof each === "string" && each !== ""))
      return undefined;
    const all = Array.isArray(witnesses) ? witnesses.map(String) : [];
    return { identity, front, admin, witnesses: all } as Holder;
  } catch {
    return undefined;
  }
}
