import { type KubeObject } from "@spry/kube";
import { parseDuration } from "./settings/duration.ts";

const group = "autoscaling.knative.dev";
export const autoscalingGroup = group;
export const classes = { kpa: `kpa.${group}`, hpa: `hpa.${group}` } as const;

/** The keys of `autoscaling.knative.dev/`; of two spellings the first counts (knative.dev/serving/pkg/apis/autoscaling). */
export const autoscalingKeys = {
  class: [`${group}/class`],
  minScale: [`${group}/min-scale`, `${group}/minScale`],
  maxScale: [`${group}/max-scale`, `${group}/maxScale`],
  initialScale: [`${group}/initial-scale`, `${group}/initialScale`],
  activationScale: [`${group}/activation-scale`],
  metric: [`${group}/metric`],
  target: [`${group}/target`],
  targetUtilization: [
    `${group}/target-utilization-percentage`,
    `${group}/targetUtilizationPercentage`,
  ],
  targetBurstCapacity: [`${group}/target-burst-capacity`, `${group}/targetBurstCapacity`],
  window: [`${group}/window`],
  panicWindow: [`${group}/panic-window-percentage`, `${group}/panicWindowPercentage`],
  panicThreshold: [`${group}/panic-threshold-percentage`, `${group}/panicThresholdPercentage`],
  scaleDownDelay: [`${group}/scale-down-delay`, `${group}/scaleDownDelay`],
  podRetention: [
    `${group}/scale-to-zero-pod-retention-period`,
    `${group}/scaleToZeroPodRetentionPeriod`,
  ],
  aggregation: [`${group}/metric-aggregation-algorithm`, `${group}/metricAggregationAlgorithm`],
} as const;

export const servingKeys = {
  rolloutDuration: ["serving.knative.dev/rollout-duration", "serving.knative.dev/rolloutDuration"],
  progressDeadline: [
    "serving.knative.dev/progress-deadline",
    "serving.knative.dev/progressDeadline",
  ],
} as const;

export type Annotations = Readonly<Record<string, string>>;

/** The key in use and its value. */
export function find(
  annotations: Annotations | undefined,
  keys: readonly string[],
): { key: string; value: string } | undefined {
  for (const key of keys) {
    const value = annotations?.[key];
    if (value !== undefined) return { key, value };
  }
  return undefined;
}

export function numberIn(object: KubeObject, keys: readonly string[]): number | undefined {
  const value = find(object.metadata.annotations, keys)?.value;
  if (value === undefined || value.trim() === "") return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}

/** Milliseconds. */
export function durationIn(object: KubeObject, keys: readonly string[]): number | undefined {
  const value = find(object.metadata.annotations, keys)?.value;
  return value === undefined ? undefined : parseDuration(value);
}

export function textIn(object: KubeObject, keys: readonly string[]): string | undefined {
  return find(object.metadata.annotations, keys)?.value;
}
