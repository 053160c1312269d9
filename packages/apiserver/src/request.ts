import { type ResourceType } from "./resources/resource-type.ts";

/** Who is asking (`authentication/v1 UserInfo`), as the client's credentials say. */
export interface UserInfo {
  name: string;
  groups: string[];
  uid?: string;
  extra?: Record<string, string[]>;
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
  /** Sent to the client in `Warning` headers. */
  warnings: string[];
  signal: AbortSignal;
  /** What it sends or changes is so large that its work takes turns with that of others. */
  large?: boolean;
}
