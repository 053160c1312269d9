import { knativeLabels, type Revision } from "@spry/function";
import { autoscalingKeys, classes, durationIn, numberIn, textIn } from "../annotations.ts";
import { type AutoscalerSettings, leastTarget } from "../settings/autoscaler-settings.ts";

/** What the scale of a Revision follows from: its annotations, and the settings where they say nothing. Milliseconds, shares. */
export interface ScaleSpec {
  metric: "concurrency" | "rps";
  /** What one Pod is to have: the target times the utilization. */
  target: number;
  /** What one Pod may have. */
  total: number;
  targetBurstCapacity: number;
  maxScaleUpRate: number;
  maxScaleDownRate: number;
  stableWindowMs: number;
  panicWindowMs: number;
  /** Of the ready Pods: 2 panics at twice their number. */
  panicThreshold: number;
  scaleDownDelayMs: number;
  graceMs: number;
  retentionMs: number;
  minScale: number;
  /** 0 has no limit. */
  maxScale: number;
  activationScale: number;
  scaleToZero: boolean;
  /** A Route leads to it. */
  reachable: boolean;
  /** Scaled by another autoscaler. */
  foreignClass: boolean;
}

export function scaleSpecOf(revision: Revision, settings: AutoscalerSettings): ScaleSpec {
  const keys = autoscalingKeys;
  const reachable = revision.metadata.labels?.[knativeLabels.routingState] !== "reserve";
  const metric = textIn(revision, keys.metric) === "rps" ? "rps" : "concurrency";
  const stableWindowMs = durationIn(revision, keys.window) ?? settings.stableWindowMs;
  const panicShare = (numberIn(revision, keys.panicWindow) ?? settings.panicWindowPercentage) / 100;
  const total = totalOf(revision, metric, settings);
  const percentage = numberIn(revision, keys.targetUtilization);
  const standard = metric === "rps" ? settings.rpsUtilization : settings.concurrencyUtilization;
  const utilization = percentage === undefined ? standard : percentage / 100;
  const kind = textIn(revision, keys.class) ?? settings.class;
  return {
    metric,
    total,
    target: Math.max(leastTarget, total * utilization),
    targetBurstCapacity:
      numberIn(revision, keys.targetBurstCapacity) ?? settings.targetBurstCapacity,
    maxScaleUpRate: settings.maxScaleUpRate,
    maxScaleDownRate: settings.maxScaleDownRate,
    stableWindowMs,
    // The closest whole second, at least one.
    panicWindowMs: Math.max(1, Math.round((stableWindowMs * panicShare) / 1000)) * 1000,
    panicThreshold:
      (numberIn(revision, keys.panicThreshold) ?? settings.panicThresholdPercentage) / 100,
    scaleDownDelayMs: durationIn(revision, keys.scaleDownDelay) ?? settings.scaleDownDelayMs,
    graceMs: settings.scaleToZeroGraceMs,
    // No request can reach the last Pod of a Revision to which no Route leads.
    retentionMs: reachable
      ? (durationIn(revision, keys.podRetention) ?? settings.podRetentionMs)
      : 0,
    minScale: reachable ? (numberIn(revision, keys.minScale) ?? settings.minScale) : 0,
    maxScale: numberIn(revision, keys.maxScale) ?? settings.maxScale,
    activationScale: numberIn(revision, keys.activationScale) ?? 0,
    scaleToZero: settings.scaleToZero,
    reachable,
    foreignClass: kind !== classes.kpa,
  };
}

/** Knative's `ResolveMetricTarget`: a limit of the Revision is never exceeded by a target. */
function totalOf(
  revision: Revision,
  metric: ScaleSpec["metric"],
  settings: AutoscalerSettings,
): number {
  const given = numberIn(revision, autoscalingKeys.target);
  if (metric === "rps") return given ?? settings.rpsTarget;
  const limit = revision.spec.containerConcurrency || 0;
  if (given === undefined) return limit || settings.concurrencyTarget;
  return limit ? Math.min(given, limit) : given;
}

/** The Pods that a Revision begins with. */
export function initialScaleOf(revision: Revision, settings: AutoscalerSettings): number {
  const given = numberIn(revision, autoscalingKeys.initialScale);
  const initial =
    given === undefined || (given === 0 && !settings.allowZeroInitialScale)
      ? settings.initialScale
      : given;
  const { minScale, maxScale } = scaleSpecOf(revision, settings);
  const least = Math.max(initial, minScale);
  return maxScale > 0 ? Math.min(least, maxScale) : least;
}

/** The ready Pods from which a Revision counts as active: those to begin with, and later the least number, but one. */
export function minScaleWhileStarting(
  revision: Revision,
  settings: AutoscalerSettings,
  initialized: boolean,
): number {
  if (!initialized) return initialScaleOf(revision, settings);
  return Math.max(1, scaleSpecOf(revision, settings).minScale);
}
