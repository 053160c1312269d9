import { type Revision, type Route } from "@spry/function";
import {
  type Clock,
  Informer,
  type KubeClient,
  type KubeObject,
  type Logger,
  type Namespace,
  type NetworkPolicy,
  type ObjectKey,
  type Pod,
  resources,
  sleep,
} from "@spry/kube";
import { isLoopback } from "../http/listening.ts";
import { admits, type Called, type Caller, isolating } from "./policy-peers.ts";

export interface CallersDeps {
  client: KubeClient;
  routes: Informer<Route>;
  revisions: Informer<Revision>;
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

const maxRetryMs = 1_000;
/** For what Pods and namespaces there are, the first time that it matters. */
const peersWaitMs = 5_000;
const defaultPort = 8080;
const byAddress = "address";

/**
 * Who may call what is served on demand: callers in the cluster reach it through the gateway, so that a NetworkPolicy of its
 * Pods is the gateway's to keep. Callers are known by their Pods' addresses, and no other caller is admitted where a policy
 * asks for Pods; this machine itself always is, as with every Pod of it.
 */
export class Callers {
  readonly #deps: CallersDeps;
  readonly #policies: Informer<NetworkPolicy>;
  #peers:
    | { pods: Informer<Pod>; namespaces: Informer<Namespace>; ready: Promise<unknown> }
    | undefined;

  constructor(deps: CallersDeps) {
    this.#deps = deps;
    this.#policies = this.#watch(
      new Informer(deps.client, resources.networkPolicies, {
        ...this.#watching,
        indexes: { namespace: ({ metadata }) => [metadata.namespace ?? ""] },
      }),
    );
  }

  get policies(): Informer<NetworkPolicy> {
    return this.#policies;
  }

  /** Whether a caller may reach everything that this Route leads to; at once where no policy is about it. */
  mayCall(route: ObjectKey, connection: Connection): boolean | Promise<boolean> {
    const [namespace = ""] = route.split("/");
    const policies = this.#policies.byIndex("namespace", namespace);
    if (policies.length === 0) return true;
    const isolated = this.#calledBy(route, namespace).flatMap((called) => {
      const mine = isolating(policies, called);
      return mine.length > 0 ? [{ called, mine }] : [];
    });
    const address = (connection.remoteAddress ?? "").replace(/^::ffff:/, "");
    if (isolated.length === 0 || this.#isMachine(address, connection)) return true;
    return this.#callerAt(address).then((caller) =>
      isolated.every(({ called, mine }) => admits(mine, called, caller)),
    );
  }

  #isMachine(address: string, { remoteAddress, localAddress }: Connection): boolean {
    const { isMachine = isLoopback } = this.#deps;
    if (remoteAddress === undefined) return false;
    return isMachine(address) || remoteAddress === localAddress;
  }

  #calledBy(route: ObjectKey, namespace: string): Called[] {
    const traffic = this.#deps.routes.get(route)?.status?.traffic ?? [];
    const names = new Set(traffic.flatMap(({ revisionName }) => revisionName ?? []));
    return [...names].flatMap((name) => {
      const revision = this.#deps.revisions.get(`${namespace}/${name}`);
      if (!revision) return [];
      const { metadata, spec } = revision;
      // As its Deployment labels its Pods.
      const labels = {
        app: name,
        ...metadata.labels,
        "serving.knative.dev/revision": name,
        "serving.knative.dev/revisionUID": metadata.uid ?? "",
      };
      const [port] = spec.containers?.flatMap(({ ports = [] }) => ports) ?? [];
      return {
        namespace,
        labels,
        port: port?.containerPort ?? defaultPort,
        portName: port?.name ?? "user-port",
      };
    });
  }

  async #callerAt(address: string): Promise<Caller> {
    this.#peers ??= this.#startPeers();
    const { pods, namespaces, ready } = this.#peers;
    await ready;
    const found = pods.byIndex(byAddress, address);
    const pod = found.find(({ status }) => !/^(?:Succeeded|Failed)$/.test(status?.phase ?? ""));
    if (!pod) return { address, pod: undefined };
    const { namespace = "", labels = {} } = pod.metadata;
    const namespaceLabels = namespaces.get(namespace)?.metadata.labels ?? {};
    return { address, pod: { namespace, labels, namespaceLabels } };
  }

  /** Most clusters have no policy that is about what is served on demand: nothing is watched for it before one is. */
  #startPeers() {
    const { client, clock } = this.#deps;
    const pods = this.#watch(
      new Informer(client, resources.pods, {
        ...this.#watching,
        transform: slim,
        indexes: { [byAddress]: addressesOf },
      }),
    );
    const namespaces = this.#watch(new Informer(client, resources.namespaces, this.#watching));
    const both: Promise<unknown> = Promise.all([pods.synced, namespaces.synced]);
    const ready = Promise.race([both, sleep(clock, peersWaitMs)]);
    return { pods, namespaces, ready };
  }

  get #watching() {
    const { clock, log } = this.#deps;
    return { clock, log, maxRetryMs };
  }

  #watch<T extends KubeObject>(informer: Informer<T>): Informer<T> {
    void informer.run(this.#deps.signal);
    return informer;
  }
}

/** Those of the machine's own network have its address, which is not theirs. */
function addressesOf({ spec, status }: Pod): string[] {
  if (spec?.hostNetwork) return [];
  return (status?.podIPs ?? [{ ip: status?.podIP }]).flatMap(({ ip }) => ip ?? []);
}

function slim({ metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels } = metadata;
  return {
    metadata: { name, namespace, uid, resourceVersion, labels },
    spec: { hostNetwork: spec?.hostNetwork },
    status: { phase: status?.phase, podIP: status?.podIP, podIPs: status?.podIPs },
  } as Pod;
}
