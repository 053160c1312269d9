import { type ScaleSpec } from "./scale-spec.ts";

/** Where a Revision stands when a suggestion for it is there. Times in milliseconds of one clock. */
export interface Standing {
  now: number;
  /** What the Deployment is to have now. */
  replicas: number;
  readyPods: number;
  /** Requests under way or waiting. */
  current: number;
  /** It has once had the Pods to begin with. */
  initialized: boolean;
  initialScale: number;
  /** How long the Pods to begin with may take. */
  activationMs: number;
  /** Since when it is meant to have Pods. */
  activeSince: number;
  /** Since when all requests are known of; undefined while a gateway does not say anything. */
  knownSince: number | undefined;
  /** Since when it has had nothing to do. */
  inactiveSince: number | undefined;
}

export interface Decision {
  replicas: number;
  inactiveSince: number | undefined;
}

/**
 * The replicas that follow from a suggestion: within bounds, no fewer while it is not known what there is to do, and none at
 * all only after the times that have to pass before (knative.dev/serving/pkg/reconciler/autoscaling/kpa/scaler.go).
 */
export function decide(spec: ScaleSpec, standing: Standing, suggested: number): Decision {
  const { now, replicas, knownSince } = standing;
  const isKnown = knownSince !== undefined && now - knownSince >= spec.stableWindowMs;
  let pods = standing.current > 0 ? Math.max(1, suggested) : suggested;
  if (!isKnown) pods = Math.max(pods, replicas);
  const isStarting = !standing.initialized && spec.reachable;
  if (isStarting && now - standing.activeSince >= standing.activationMs && standing.current === 0)
    return { replicas: 0, inactiveSince: undefined };
  pods = Math.max(pods, isStarting ? standing.initialScale : 0, spec.minScale);
  if (spec.maxScale > 0) pods = Math.min(pods, spec.maxScale);
  if (pods > 0) return { replicas: pods, inactiveSince: undefined };
  if (replicas === 0) return { replicas: 0, inactiveSince: standing.inactiveSince };
  return toZero(spec, standing);
}

function toZero(spec: ScaleSpec, standing: Standing): Decision {
  const { now, replicas, activeSince } = standing;
  const stays = (inactiveSince: number | undefined) => ({ replicas: 1, inactiveSince });
  if (!spec.scaleToZero) return stays(undefined);
  // What has just got a Pod keeps it for a window, whatever the averages say.
  if (spec.reachable && now - activeSince < spec.stableWindowMs) return stays(undefined);
  const inactiveSince = standing.inactiveSince ?? now;
  const waits = now - inactiveSince < Math.max(spec.graceMs, spec.retentionMs);
  return waits ? { replicas, inactiveSince } : { replicas: 0, inactiveSince };
}
