import {
  type Clock,
  Informer,
  type KubeClient,
  type Logger,
  type NetworkPolicy,
  type ObjectKey,
  resources,
} from "@spry/kube";
import { isLoopback } from "../http/listening.ts";
import { calledAt, calledBy, type CalledSources } from "./called.ts";
import { Peers } from "./peers.ts";
import { admits, type Called, type Caller, isolates, isolating } from "./policy-peers.ts";

export interface CallersDeps extends CalledSources {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
  /** Whether it is an address of this machine's own programs. */
  isMachine?: (address: string) => boolean;
}

/** What is seen of a connection. */
export interface Connection {
  remoteAddress?: string | undefined;
  localAddress?: string | undefined;
}

/** What a policy isolates, with the policies that do. */
interface Isolated {
  called: Called;
  policies: NetworkPolicy[];
}

const maxRetryMs = 1_000;
/** Index of all policies that isolate Pods, wherever they are. */
const ofAny = "isolating";

/**
 * Who may call what the gateway leads to: for the network, the Pods that it calls are called by the gateway, so that their
 * NetworkPolicies are the gateway's to keep. Callers are known by the addresses of their Pods, never by what they say. This
 * machine itself may always call, as with every Pod of it.
 */
export class Callers {
  readonly #deps: CallersDeps;
  readonly #policies: Informer<NetworkPolicy>;
  #peers: Peers | undefined;

  constructor(deps: CallersDeps) {
    this.#deps = deps;
    const { client, clock, log, signal } = deps;
    this.#policies = new Informer(client, resources.networkPolicies, {
      clock,
      log,
      maxRetryMs,
      indexes: {
        namespace: ({ metadata }) => [metadata.namespace ?? ""],
        [ofAny]: (policy) => (isolates(policy) ? [ofAny] : []),
      },
    });
    void this.#policies.run(signal);
  }

  get policies(): Informer<NetworkPolicy> {
    return this.#policies;
  }

  /**
   * Whether a caller inside may reach everything that this Route, Function or Service leads to; at once where no policy is
   * about it. Where a policy asks for Pods, none but Pods are admitted.
   */
  mayCall(key: ObjectKey, connection: Connection): boolean | Promise<boolean> {
    return this.#mayCall(key, connection, (peers, address) => peers.callerAt(address));
  }

  /**
   * The same for the address that is for everybody: only callers that have the address of a Pod are asked about. Clients
   * outside, and nodes, with whose address others may arrive (source NAT), are not the matter of these policies.
   */
  mayCallFront(key: ObjectKey, connection: Connection): boolean | Promise<boolean> {
    return this.#mayCall(key, connection, (peers, address) => {
      // Any address could be a Pod's then.
      if (!peers.areKnown) return { address, pod: undefined };
      const caller = peers.callerAt(address);
      return caller.pod ? caller : undefined;
    });
  }

  /** Whether Pods of a Function may call a Service, of whichever kind; also where neither has any at present. */
  maySend(fn: ObjectKey, service: ObjectKey): boolean | Promise<boolean> {
    if (!this.#isAnyIsolated) return true;
    return this.#known().then((peers) => {
      const called = this.#called(service, peers);
      // What its Pods will be is not known: it could be what a policy isolates.
      if (called.length === 0) return this.#policiesIn(namespaceOf(service)).length === 0;
      const labels = this.#called(fn, peers).map((own) => own.labels);
      const callers = (labels.length > 0 ? labels : [{}]).map((own) =>
        peers.callerOf(namespaceOf(fn), own),
      );
      const isolated = this.#isolated(called);
      return callers.every((caller) => areAdmitted(isolated, caller));
    });
  }

  #mayCall(
    key: ObjectKey,
    connection: Connection,
    callerOf: (peers: Peers, address: string) => Caller | undefined,
  ): boolean | Promise<boolean> {
    if (!this.#isAnyIsolated) return true;
    const called = calledBy(this.#deps, key);
    if (called.length > 0 && this.#isolated(called).length === 0) return true;
    const address = (connection.remoteAddress ?? "").replace(/^::ffff:/, "");
    if (this.#isMachine(address, connection)) return true;
    return this.#known().then((peers) => {
      const caller = callerOf(peers, address);
      return !caller || areAdmitted(this.#isolated(this.#called(key, peers)), caller);
    });
  }

  #called(key: ObjectKey, peers: Peers): Called[] {
    const called = calledBy(this.#deps, key);
    return called.length > 0 ? called : calledAt(this.#deps, peers, key);
  }

  /** By the policies of the Pods' own namespaces: endpoints may be Pods of another one than the Service's. */
  #isolated(called: readonly Called[]): Isolated[] {
    return called.flatMap((each) => {
      const policies = isolating(this.#policiesIn(each.namespace), each);
      return policies.length > 0 ? [{ called: each, policies }] : [];
    });
  }

  get #isAnyIsolated(): boolean {
    return this.#policies.byIndex(ofAny, ofAny).length > 0;
  }

  #policiesIn(namespace: string): NetworkPolicy[] {
    return this.#policies.byIndex("namespace", namespace).filter(isolates);
  }

  #isMachine(address: string, { remoteAddress, localAddress }: Connection): boolean {
    const { isMachine = isLoopback } = this.#deps;
    if (remoteAddress === undefined) return false;
    return isMachine(address) || remoteAddress === localAddress;
  }

  /** Most clusters have no policy that is about what the gateway serves: nothing is watched for it before one is. */
  async #known(): Promise<Peers> {
    this.#peers ??= new Peers(this.#deps);
    await this.#peers.ready;
    return this.#peers;
  }
}

const namespaceOf = (key: ObjectKey): string => key.split("/")[0] ?? "";

function areAdmitted(isolated: readonly Isolated[], caller: Caller): boolean {
  return isolated.every(({ called, policies }) => admits(policies, called, caller));
}
