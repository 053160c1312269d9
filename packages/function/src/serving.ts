import { type FunctionSpec, type TrafficShare } from "./types.ts";

/** Bounds of what a Function may say about how it is served (Knative's, where Knative has one). */
export const servingBounds = {
  concurrency: [1, 1000],
  timeoutSeconds: [1, 3600],
  shares: 64,
  /** `<tag>-<name>` is a label of a host name. */
  tagLength: 40,
} as const satisfies Record<string, number | readonly [number, number]>;

/**
 * Whether the Function is served on demand, by a Knative Service: it may go to zero, splits its traffic, or limits its
 * concurrency. All others are a Deployment behind a Service (docs/compatibility.md#serving).
 */
export function isServedOnDemand({
  scaleConfig,
  concurrency,
  traffic = [],
}: FunctionSpec): boolean {
  const hasConcurrency = concurrency?.target !== undefined || concurrency?.limit !== undefined;
  return scaleConfig?.minReplicas === 0 || hasConcurrency || traffic.length > 0;
}

/** What a Function without `spec.traffic` means by that. */
export const latestTraffic: readonly TrafficShare[] = [{ latest: true, percent: 100 }];
