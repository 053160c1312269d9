import { ConfigReader, SettingsError } from "./config-reader.ts";

/** `config-autoscaler` (knative.dev/serving/pkg/autoscaler/config). Times in milliseconds, shares as fractions. */
export interface AutoscalerSettings {
  scaleToZero: boolean;
  /** Of what a Pod may handle, the share that is aimed for; 0 to 1. */
  concurrencyUtilization: number;
  concurrencyTarget: number;
  rpsTarget: number;
  rpsUtilization: number;
  /** -1 has no limit. */
  targetBurstCapacity: number;
  maxScaleUpRate: number;
  maxScaleDownRate: number;
  stableWindowMs: number;
  /** Of the stable window, 1 to 100. */
  panicWindowPercentage: number;
  panicThresholdPercentage: number;
  scaleToZeroGraceMs: number;
  podRetentionMs: number;
  scaleDownDelayMs: number;
  initialScale: number;
  allowZeroInitialScale: boolean;
  minScale: number;
  /** 0 has no limit. */
  maxScale: number;
  maxScaleLimit: number;
  class: string;
}

export const windowBounds = { minMs: 6_000, maxMs: 3_600_000 };
export const leastTarget = 0.01;
const maxPods = 2 ** 31 - 1;

export function autoscalerSettings(
  data: Readonly<Record<string, string>> = {},
): AutoscalerSettings {
  const read = new ConfigReader(data);
  const percentage = read.number("container-concurrency-target-percentage", 70, { max: 100 });
  if (percentage <= 0)
    throw new SettingsError(
      `container-concurrency-target-percentage = ${percentage} is outside of valid range of (0, 100]`,
    );
  const targetBurstCapacity = read.number("target-burst-capacity", 211);
  if (targetBurstCapacity < 0 && targetBurstCapacity !== -1)
    throw new SettingsError(
      `target-burst-capacity must be either non-negative or -1 (for unlimited), was: ${targetBurstCapacity}`,
    );
  const allowZeroInitialScale = read.flag("allow-zero-initial-scale", false);
  const pods = { min: 0, max: maxPods };
  const settings: AutoscalerSettings = {
    scaleToZero: read.flag("enable-scale-to-zero", true),
    // Fractions up to 1 are what the key once meant.
    concurrencyUtilization: percentage > 1 ? percentage / 100 : percentage,
    concurrencyTarget: read.number("container-concurrency-target-default", 100, {
      min: leastTarget,
    }),
    rpsTarget: read.number("requests-per-second-target-default", 200, { min: leastTarget }),
    rpsUtilization: 0.7,
    targetBurstCapacity,
    maxScaleUpRate: read.number("max-scale-up-rate", 1000),
    maxScaleDownRate: read.number("max-scale-down-rate", 2),
    stableWindowMs: read.duration("stable-window", 60_000, {
      min: windowBounds.minMs,
      max: windowBounds.maxMs,
    }),
    panicWindowPercentage: read.number("panic-window-percentage", 10, { min: 1, max: 100 }),
    panicThresholdPercentage: read.number("panic-threshold-percentage", 200, {
      min: 110,
      max: 1000,
    }),
    // Knative refuses 0: there, the activator has to be put in the path first. Here the gateway always is.
    scaleToZeroGraceMs: read.duration("scale-to-zero-grace-period", 30_000),
    podRetentionMs: read.duration("scale-to-zero-pod-retention-period", 0),
    scaleDownDelayMs: read.duration("scale-down-delay", 0, { max: windowBounds.maxMs }),
    initialScale: read.integer("initial-scale", 1, {
      ...pods,
      min: allowZeroInitialScale ? 0 : 1,
    }),
    allowZeroInitialScale,
    minScale: read.integer("min-scale", 0, pods),
    maxScale: read.integer("max-scale", 0, pods),
    maxScaleLimit: read.integer("max-scale-limit", 0, pods),
    class: read.text("pod-autoscaler-class", "kpa.autoscaling.knative.dev"),
  };
  for (const key of ["maxScaleUpRate", "maxScaleDownRate"] as const) {
    if (settings[key] <= 1)
      throw new SettingsError(
        `${key === "maxScaleUpRate" ? "max-scale-up-rate" : "max-scale-down-rate"} = ${settings[key]}, must be greater than 1.0`,
      );
  }
  const { minScale, maxScale } = settings;
  if (maxScale > 0 && minScale > maxScale)
    throw new SettingsError(`min-scale (${minScale}) must be less than max-scale (${maxScale})`);
  return settings;
}
