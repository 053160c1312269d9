import { type Clock, type Logger, type Transport } from "@spry/kube";
import { type Aggregator } from "./aggregation/aggregator.ts";
import { type Admission } from "./admission/admission.ts";
import { type Authenticator } from "./authentication/authenticator.ts";
import { type Authorizer } from "./authorization/authorizer.ts";
import { type ClusterAddresses } from "./kinds/service/cluster-addresses.ts";
import { type Catalog } from "./resources/catalog.ts";
import { type Conversions } from "./schema/conversion/conversions.ts";
import { type Store } from "./store/store.ts";
import { type Watches } from "./watch/watches.ts";

/** What every request handler works with. */
export interface Engine {
  store: Store;
  catalog: Catalog;
  admission: Admission;
  aggregator: Aggregator;
  conversions: Conversions;
  authorizer: Authorizer;
  authenticator: Authenticator;
  addresses: ClusterAddresses;
  watches: Watches;
  clock: Clock;
  log: Logger;
  kubelet: (nodeName: string) => Transport | undefined;
  /** Aborted when the server closes: ends watches and streams. */
  closing: AbortSignal;
}
