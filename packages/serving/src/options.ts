import { type Clock, type KubeClient, type Logger, type Pod } from "@spry/kube";

export interface ServingOptions {
  client: KubeClient;
  /** The administrative URLs of the gateways that run now; asked again when a connection ends, and every second. */
  gateways: () => readonly string[] | Promise<readonly string[]>;
  /** What gateways want to have before they show their counts; asked for each connection. */
  countsToken?: () => string | Promise<string>;
  /** Where callers inside the cluster reach gateways; undefined leaves Services without endpoints. */
  callers?: GatewayAddressing | undefined;
  /** How many Services may have an address or port at the gateway; all that there are unless it is said. */
  maxPlaces?: number;
  /** What the URLs of Routes end in, as `localhost`, and the port that they name if it is not 80. */
  domain: { name: string; port?: number };
  /**
   * Reads an image's digest from its registry: `repository@sha256:…`, or undefined if it cannot be known. Without it, only images
   * that are named by digest have one in `status.containerStatuses`, and others run as they are named.
   */
  resolveDigest?: DigestResolver;
  clock?: Clock;
  log?: Logger;
  signal: AbortSignal;
}

/** The Pods that will run the image: their namespace, ServiceAccount and `imagePullSecrets` say who may pull it. */
export type DigestResolver = (
  image: string,
  pods: Pick<Pod, "metadata" | "spec">,
) => Promise<string | undefined>;

/** How a Service that is served by a Route has its place at the gateway (docs/adr/0018-serving-from-zero.md). */
export type GatewayAddressing =
  /** An address of its own in 127.96.0.0/12, at this port. */
  | { kind: "address"; port: number }
  /** A port of its own, at every one of these addresses. */
  | { kind: "port"; addresses: () => readonly string[] | Promise<readonly string[]> };
