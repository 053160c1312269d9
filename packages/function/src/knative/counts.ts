import { type ObjectKey } from "@spry/kube/browser";

/**
 * What gateways report to the scaler. The scaling leader opens `GET /counts` at the administrative port of every
 * gateway and keeps it open; the gateway responds with a line of JSON (`CountsLine`) for every Revision that it knows
 * something about, and from then on pushes a line when a Revision's counts have changed: at once when a request
 * begins to wait for a Revision without ready Pods, otherwise at most one a second for each Revision. An empty line
 * every second shows that the connection is alive. Totals only ever grow: the average of a window is the difference
 * of two lines divided by the difference of their times, so that nothing is missed between two lines, and a line that
 * is lost costs nothing. They begin at 0 when a gateway starts (`gateway` is another value then).
 */
export interface CountsLine {
  /** Which process speaks; another value after a restart. */
  gateway: string;
  /** `namespace/name` of the Revision. */
  revision: ObjectKey;
  /** Milliseconds of the gateway's monotonic clock, to compare with those of its other lines only. */
  at: number;
  /** Requests that Pods handle now. */
  active: number;
  /** Requests that wait for a Pod now. */
  waiting: number;
  /** Requests that have arrived so far. */
  requests: number;
  /** The sum of (active + waiting) × milliseconds so far. */
  load: number;
}

export const countsPath = "/counts";

/**
 * `GET /drained?pod=<address>` at the same port, with the same token: answered once the gateway has nothing under way at a
 * Pod that is being removed.
 */
export const drainedPath = "/drained";

/**
 * `GET /broken?pod=<address>` there: the requests that a Pod has broken off in the last seconds, as a list of `BrokenRequest`. For one
 * that has just ended; the gateway gives itself a moment to notice.
 */
export const brokenPath = "/broken";

/** A request whose connection a Pod closed before it had responded. */
export interface BrokenRequest {
  /** Of `X-Request-Id`. */
  id: string;
  method: string;
  /** Without the query, at most 200 characters. */
  path: string;
}
