import {
  type HorizontalPodAutoscaler,
  matchesLabels,
  parseLabelSelector,
  type Pod,
} from "@spry/kube";
import { byNamespace, type ControllerContext } from "../context.ts";

type Spec = NonNullable<HorizontalPodAutoscaler["spec"]>;
export type MetricSpec = NonNullable<Spec["metrics"]>[number];
export type MetricStatus = NonNullable<
  NonNullable<HorizontalPodAutoscaler["status"]>["currentMetrics"]
>[number];

/** What one metric asks for. */
export interface Proposal {
  replicas: number;
  /** As conditions and Events show it. */
  metric: string;
  status: MetricStatus;
}

/** A metric that cannot be had now; the next period may see it mended. */
export class MetricProblem extends Error {
  readonly reason: string;
  /** The same, where other metrics are named, too. */
  readonly inSum: string;

  constructor(reason: string, message: string, inSum: string) {
    super(message);
    this.reason = reason;
    this.inSum = `${inSum}: ${message}`;
  }
}

/** For which autoscaler, and what is known of its target. */
export interface MetricContext {
  context: ControllerContext;
  autoscaler: HorizontalPodAutoscaler;
  selector: string;
  current: number;
  /** As the target's status counts them. */
  counted: number;
  signal: AbortSignal;
}

/** The Pods of the target. */
export function selectedPods({ context, autoscaler, selector }: MetricContext): Pod[] {
  const requirements = parseLabelSelector(selector);
  return context.caches.pods
    .byIndex(byNamespace, autoscaler.metadata.namespace ?? "")
    .filter(({ metadata }) => matchesLabels(requirements, metadata.labels));
}
