import { type Clock, type Logger, type Transport } from "@spry/kube";
import { type Admission } from "./admission/admission.ts";
import { type Authenticator } from "./authentication/authenticator.ts";
import { type Authorizer } from "./authorization/authorizer.ts";
import { type ClusterAddresses } from "./kinds/cluster-addresses.ts";
import { type Catalog } from "./resources/catalog.ts";
import { type ResourceType } from "./resources/resource-type.ts";
import { type Conversions } from "./schema/conversion/conversions.ts";
import { type Store } from "./store/store.ts";
import { type Watches } from "./watch/watches.ts";

/** Who is asking (`authentication/v1 UserInfo`), as the client's credentials say. */
export interface UserInfo {
  name: string;
  groups: string[];
  uid?: string;
  extra?: Record<string, string[]>;
}

/** What every request handler works with. */
export interface Engine {
  store: Store;
  catalog: Catalog;
  admission: Admission;
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

/** One request for a resource, its path and options read. */
export interface ResourceRequest {
  type: ResourceType;
  namespace: string;
  /** Empty for collections. */
  name: string;
  subresource: string;
  query: URLSearchParams;
  user: UserInfo;
  /** The field manager: as the client says, or what its user agent begins with. */
  manager: string;
  dryRun: boolean;
  /** Asked for by a path of `/api/v1/watch/`, instead of by an option. */
  deprecatedWatch?: boolean;
  /** Told to the client in `Warning` headers. */
  warnings: string[];
  signal: AbortSignal;
  /** What it sends or changes is so large that its work takes turns with that of others. */
  large?: boolean;
}
