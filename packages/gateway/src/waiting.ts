import { type Function } from "@spry/function";
import { type Clock, type Informer, type ObjectKey } from "@spry/kube";
import { type Answer, overloaded, unknownFunction, upstreamUnreachable } from "./answer.ts";
import { explain } from "./explanation.ts";
import { type GatewayMetrics } from "./metrics.ts";
import { type RouteTable } from "./route-table.ts";
import { type Upstream } from "./upstream.ts";

export interface WaitingSettings {
  /** How long a request waits for a Function whose first version is on the way. */
  readyWaitMs: number;
  maxWaiting: number;
  /** Whether others than this machine's programs read the answers: what is said of failures is less then. */
  isPublic: boolean;
}

export interface WaitingDeps {
  routes: RouteTable;
  functions: Informer<Function>;
  settings: WaitingSettings;
  metrics: GatewayMetrics;
  clock: Clock;
}

/** A request that looks for a Pod. */
export interface Seeker {
  key: ObjectKey;
  arrivedAt: number;
  /** When a Pod first failed it; 0 when none has. */
  firstFailureAt: number;
  /** Whether its client has gone. */
  isOver: boolean;
}

/** How long other addresses are tried after the first failure, and waited for when a Pod is lost. */
const patienceMs = 1_000;
/** Between looks at addresses that are all suspect. */
const suspectPauseMs = 25;

/**
 * The least loaded address as soon as there is one, or the answer to give when waiting is in vain;
 * undefined when the client did not wait.
 */
export async function awaitUpstream(
  deps: WaitingDeps,
  seeker: Seeker,
): Promise<Upstream | Answer | undefined> {
  const { routes, settings, metrics } = deps;
  if (metrics.waiting >= settings.maxWaiting) return overloaded(seeker.key);
  metrics.waiting++;
  try {
    while (!seeker.isOver) {
      const upstream = routes.pick(seeker.key);
      if (upstream) return upstream;
      const prospect = prospectOf(deps, seeker);
      if (prospect.waitMs <= 0) return prospect.otherwise;
      await routes.changed(seeker.key, prospect.waitMs);
    }
    return undefined;
  } finally {
    metrics.waiting--;
  }
}

/** How long a change is still worth waiting for, and what to say when it is not. */
function prospectOf(deps: WaitingDeps, seeker: Seeker): { waitMs: number; otherwise: Answer } {
  const { routes, functions, settings, clock } = deps;
  const { key } = seeker;
  if (routes.hasUpstreams(key)) {
    const left = (seeker.firstFailureAt || seeker.arrivedAt) + patienceMs - clock.now();
    return { waitMs: Math.min(left, suspectPauseMs), otherwise: upstreamUnreachable(key) };
  }
  const fn = functions.get(key);
  if (!fn && !routes.has(key)) {
    const namespace = key.slice(0, key.indexOf("/"));
    const nearby = settings.isPublic || functions.byIndex("namespace", namespace).length > 0;
    return { waitMs: 0, otherwise: unknownFunction(key, nearby) };
  }
  const { reason, message, state } = explain(key, fn, settings.isPublic);
  const patience = { deploying: settings.readyWaitMs, absent: patienceMs, failed: 0 }[state];
  return {
    waitMs: seeker.arrivedAt + patience - clock.now(),
    otherwise: { status: 503, reason, message, headers: { "retry-after": "1" } },
  };
}
