import { type DestinationSettings } from "./activation/destination.ts";
import { type RequestSettings } from "./request/passage.ts";

export interface GatewaySettings extends DestinationSettings, RequestSettings {
  /** How long a request waits for a Function whose first version is being built or deployed, and for the routes. */
  readyWaitMs: number;
  /** For a request's whole head. */
  headTimeoutMs: number;
  /** For bodies that are kept and requests that wait, of all destinations together. */
  maxHeldBytes: number;
  /** Connections to the front from one address. */
  maxConnectionsOfAddress: number;
}

export const defaultSettings: GatewaySettings = {
  // Above the 180 s after which a Function itself responds with 408.
  upstreamTimeoutMs: 200_000,
  idleTimeoutMs: 3_600_000,
  readyWaitMs: 10_000,
  // As Knative's activator has it for each Revision.
  maxWaiting: 10_000,
  maxWaitingBytes: 64 * 1024 ** 2,
  maxWaitMs: 300_000,
  maxConcurrency: 1_000,
  maxRequestBytes: 1024 ** 3,
  bodyStallMs: 60_000,
  bodyTotalMs: 120_000,
  maxHeldBytes: 128 * 1024 ** 2,
  // Half of all: a load balancer, or everything on this machine, is one address.
  maxConnectionsOfAddress: 10_000,
  headTimeoutMs: 60_000,
  trustForwarded: false,
};
