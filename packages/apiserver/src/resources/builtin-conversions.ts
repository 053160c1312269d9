import { type UnknownObject } from "@spry/kube";
import { cpu } from "../kinds/autoscaler/strategy.ts";

/** Versions of a built-in kind that are stored as another one. */
export interface BuiltinConversion {
  collection: string;
  apiVersion: string;
  toStorage(object: UnknownObject): void;
  fromStorage(object: UnknownObject): void;
}

/** `<apiVersion> <kind>` → how it is stored. */
export const conversions: Record<string, BuiltinConversion> = {
  "events.k8s.io/v1 Event": {
    collection: "/events",
    apiVersion: "v1",
    toStorage: eventToCore,
    fromStorage: (event) => rename(event, inverse(eventFields), "events.k8s.io/v1"),
  },
  "autoscaling/v1 HorizontalPodAutoscaler": {
    collection: "autoscaling/horizontalpodautoscalers",
    apiVersion: "autoscaling/v2",
    toStorage: autoscalerToV2,
    fromStorage: autoscalerToV1,
  },
};

/** events.k8s.io/v1 → core/v1 (`pkg/apis/events/v1/conversion.go`). */
const eventFields: Record<string, string> = {
  regarding: "involvedObject",
  note: "message",
  reportingController: "reportingComponent",
  deprecatedSource: "source",
  deprecatedFirstTimestamp: "firstTimestamp",
  deprecatedLastTimestamp: "lastTimestamp",
  deprecatedCount: "count",
};

/** Makes an Event of events.k8s.io/v1 one of core/v1, in place. */
export function eventToCore(event: UnknownObject): void {
  rename(event, eventFields, "v1");
}

function inverse(names: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(names).map(([from, to]) => [to, from]));
}

function rename(object: UnknownObject, names: Record<string, string>, apiVersion: string): void {
  for (const [from, to] of Object.entries(names)) {
    if (object[from] === undefined) continue;
    object[to] = object[from];
    delete object[from];
  }
  object.apiVersion = apiVersion;
}

interface MetricTarget {
  type: string;
  averageUtilization?: number;
}
interface Metric {
  type: string;
  resource?: { name: string; target: MetricTarget };
}

function isCpuUtilization(metric: Metric): boolean {
  return metric.type === "Resource" && metric.resource?.name === "cpu";
}

function autoscalerToV2(object: UnknownObject): void {
  object.apiVersion = "autoscaling/v2";
  const spec = object.spec as Record<string, unknown> | undefined;
  if (!spec) return;
  const { targetCPUUtilizationPercentage: utilization, ...rest } = spec;
  object.spec = { ...rest, metrics: [cpu((utilization as number | undefined) ?? 80)] };
}

function autoscalerToV1(object: UnknownObject): void {
  object.apiVersion = "autoscaling/v1";
  const { metrics, behavior: _, ...spec } = (object.spec ?? {}) as Record<string, unknown>;
  const target = (metrics as Metric[] | undefined)?.find(isCpuUtilization)?.resource?.target;
  if (target?.averageUtilization !== undefined) {
    spec.targetCPUUtilizationPercentage = target.averageUtilization;
  }
  object.spec = spec;
  const status = object.status as Record<string, unknown> | undefined;
  if (!status) return;
  const {
    currentMetrics,
    conditions: __,
    ...kept
  } = {
    currentReplicas: 0,
    ...status,
  } as Record<string, unknown>;
  const current = (
    currentMetrics as { type: string; resource?: { name: string; current: MetricTarget } }[]
  )?.find((metric) => metric.type === "Resource" && metric.resource?.name === "cpu");
  if (current?.resource?.current.averageUtilization !== undefined) {
    kept.currentCPUUtilizationPercentage = current.resource.current.averageUtilization;
  }
  object.status = kept;
}
