import { type ObjectKey } from "@spry/kube";
import { type Destination } from "../activation/destination.ts";

/** Where the requests of a host go. */
export interface Route {
  /** `namespace/name` of the Function or the Knative Route, for metrics. */
  readonly key: ObjectKey;
  /** Whether it answers Knative's probes, and not to clients outside when it is `cluster-local`. */
  readonly isKnative: boolean;
  readonly isClusterLocal: boolean;
  /** The destination of the next request. */
  choose(): Destination;
  /** That of a tag which the request names by a header; undefined where there is none, or headers do not count. */
  chooseTagged?(tag: string): Destination | undefined;
  /** Whether a request that has chosen this destination is still right there. */
  leadsTo(destination: Destination): boolean;
}

/** One of a route's destinations, and its share of the requests. */
export interface Weighted<T> {
  target: T;
  /** Any unit; 0 gets nothing. */
  weight: number;
}
