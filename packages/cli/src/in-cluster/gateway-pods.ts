import { type EndpointSlice, Informer, type KubeClient, type Logger, resources } from "@spry/kube";
import { gatewayName } from "../install/gateway.ts";

const adminPort = 8090;

/** The Pods of the gateway in a cluster, by the EndpointSlices of its Service. */
export class GatewayPods {
  readonly #slices: Informer<EndpointSlice>;

  constructor(client: KubeClient, namespace: string, log: Logger) {
    const labelSelector = `kubernetes.io/service-name=${gatewayName}`;
    this.#slices = new Informer(client, resources.endpointSlices, {
      namespace,
      labelSelector,
      log,
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#slices.run(signal);
  }

  /** Of every gateway that still answers requests, also of one that leaves. */
  get adminUrls(): string[] {
    return this.#all(({ conditions }) => conditions?.serving !== false).map(
      (address) => `http://${address}:${adminPort}`,
    );
  }

  /** Of those that take new requests. */
  get addresses(): string[] {
    return this.#all(({ conditions }) => conditions?.ready !== false);
  }

  #all(isWanted: (endpoint: NonNullable<EndpointSlice["endpoints"]>[number]) => boolean): string[] {
    const endpoints = [...this.#slices.list()].flatMap((slice) => slice.endpoints ?? []);
    return [...new Set(endpoints.filter(isWanted).flatMap(({ addresses }) => addresses))];
  }
}
