import { type Admission } from "../admission/admission.ts";
import { type Callers } from "../inside/callers.ts";
import { type Socket } from "node:net";
import { type Clock, type Logger, type ObjectKey } from "@spry/kube";
import { type BrokenRequests } from "../attempt/broken-requests.ts";
import { type Destination } from "../activation/destination.ts";
import { type GatewayMetrics } from "../metrics/gateway-metrics.ts";
import { type BoundedLog } from "../http/bounded-log.ts";
import { type ClientRequest, type ClientResponse } from "../http/client-side.ts";
import { type MemoryBudget } from "./memory-budget.ts";
import { type AccessChecks, type Exposed } from "../exposure/exposure.ts";
import { type ExposedHosts } from "../exposure/exposed-hosts.ts";
import { type OwnHosts } from "../routing/own-hosts.ts";
import { type Route } from "../routing/route.ts";
import { type RouteTable } from "../routing/route-table.ts";

export interface RequestSettings {
  maxRequestBytes: number;
  /** Without a byte of a request's small body, which is read as a whole before a Pod gets it. */
  bodyStallMs: number;
  /** For the whole of such a body. */
  bodyTotalMs: number;
  /** Whether what a client says in `X-Forwarded-*` and `Forwarded` is trusted. */
  trustForwarded: boolean;
  /** For the first byte of a response. */
  upstreamTimeoutMs: number;
}

export interface RequestDeps {
  routes: RouteTable;
  ownHosts: Pick<OwnHosts, "find">;
  /** Who inside the cluster may call what is served on demand. */
  callers: Callers;
  metrics: GatewayMetrics;
  memory: MemoryBudget;
  broken: Pick<BrokenRequests, "note">;
  /** Requests that a Pod had and did not answer. */
  failures: BoundedLog;
  /** Hard limits that are kept with other gateways; undefined where this is the only one. */
  admission: Admission | undefined;
  settings: RequestSettings;
  clock: Clock;
  log: Logger;
  /** Hosts of APIRules; undefined where they are not served. */
  exposure?: {
    hosts: ExposedHosts;
    checks: AccessChecks;
    refusals: BoundedLog;
    functionHosts: boolean;
    /** In redirects; undefined without HTTPS. */
    httpsPort: number | undefined;
  };
}

/** The client's side of a tunnel: what an `Upgrade` request arrived on. */
export interface UpgradeSocket {
  socket: Socket;
  head: Buffer;
  /** From now on, the socket is not the server's. */
  detach: () => void;
}

/** A request on its way through the gateway: what filters have found out about it. */
export interface Passage {
  readonly request: ClientRequest;
  readonly response: ClientResponse;
  readonly upgrade: UpgradeSocket | undefined;
  /** In `X-Request-Id`, of what the Pod gets and of the response. */
  readonly requestId: string;
  /** Whether others than this machine's programs read the response: it says less of failures then. */
  readonly isPublic: boolean;
  /** The authority as it was written, host and perhaps port; empty where an HTTP/1.0 client names none. */
  host: string;
  /** Path and query, as the Pod gets them. */
  path: string;
  /** What of the path has named the Function, and is not passed on: `/fn/default/shop`; empty where its host has named it. */
  prefix: string;
  /** What its host stands for, or the address that it has come to. */
  key: ObjectKey;
  /** Whether it was sent to the address for everybody, and not to one that only callers in the cluster are given. */
  readonly isExternal: boolean;
  /** The Revision that another gateway sends it to this one for, which admits to it (ADR 0030). */
  peerRevision: ObjectKey | undefined;
  /** Whether it has come over TLS. */
  readonly isSecure: boolean;
  exposed: Exposed | undefined;
  route: Route | undefined;
  destination: Destination | undefined;
}
