import {
  type Clock,
  Informer,
  type KubeClient,
  type KubeObject,
  type Logger,
  type Namespace,
  type Pod,
  resources,
  sleep,
} from "@spry/kube";
import { type Caller, type Labels } from "./policy-peers.ts";

export interface PeersDeps {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
}

const maxRetryMs = 1_000;
/** For what Pods and namespaces there are, the first time that it matters. */
const peersWaitMs = 5_000;
const byAddress = "address";

/** The Pods and namespaces that NetworkPolicies may name. */
export class Peers {
  readonly #pods: Informer<Pod>;
  readonly #namespaces: Informer<Namespace>;
  /** Resolves when they are known, or after 5 s. */
  readonly ready: Promise<unknown>;

  constructor({ client, clock, log, signal }: PeersDeps) {
    const watching = { clock, log, maxRetryMs };
    const watch = <T extends KubeObject>(informer: Informer<T>): Informer<T> => {
      void informer.run(signal);
      return informer;
    };
    this.#pods = watch(
      new Informer(client, resources.pods, {
        ...watching,
        transform: slim,
        indexes: { [byAddress]: addressesOf },
      }),
    );
    this.#namespaces = watch(new Informer(client, resources.namespaces, watching));
    const both: Promise<unknown> = Promise.all([this.#pods.synced, this.#namespaces.synced]);
    this.ready = Promise.race([both, sleep(clock, peersWaitMs)]);
  }

  get areKnown(): boolean {
    return this.#pods.hasSynced && this.#namespaces.hasSynced;
  }

  /** The Pod that has the address at present. */
  podAt(address: string): Pod | undefined {
    const found = this.#pods.byIndex(byAddress, address);
    return found.find(({ status }) => !/^(?:Succeeded|Failed)$/.test(status?.phase ?? ""));
  }

  callerAt(address: string): Caller {
    const metadata = this.podAt(address)?.metadata;
    if (!metadata) return { address, pod: undefined };
    return this.callerOf(metadata.namespace ?? "", metadata.labels ?? {}, address);
  }

  /** A Pod of these labels; without an address, wherever it may be. */
  callerOf(namespace: string, labels: Labels, address?: string): Caller {
    const namespaceLabels = this.#namespaces.get(namespace)?.metadata.labels ?? {};
    return { address, pod: { namespace, labels, namespaceLabels } };
  }
}

/** Those of the machine's own network have its address, which is not theirs. */
function addressesOf({ spec, status }: Pod): string[] {
  if (spec?.hostNetwork) return [];
  return (status?.podIPs ?? [{ ip: status?.podIP }]).flatMap(({ ip }) => ip ?? []);
}

function slim({ metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels } = metadata;
  const ports = spec?.containers.flatMap(({ ports: own = [] }) => own) ?? [];
  return {
    metadata: { name, namespace, uid, resourceVersion, labels },
    spec: { hostNetwork: spec?.hostNetwork, containers: ports.length > 0 ? [{ ports }] : [] },
    status: { phase: status?.phase, podIP: status?.podIP, podIPs: status?.podIPs },
  } as Pod;
}
