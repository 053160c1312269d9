import { quantityValue } from "@spry/kube";

/**
 * The arithmetic of the HorizontalPodAutoscaler (Kubernetes documentation, "Horizontal Pod
 * Autoscaling: algorithm details"; `pkg/controller/podautoscaler/replica_calculator.go`). Pure.
 */

/** Up to these differences from the target, as fractions of it, nothing is scaled. */
export interface Tolerances {
  scaleUp: number;
  scaleDown: number;
}

/** kube-controller-manager's `--horizontal-pod-autoscaler-tolerance`. */
const defaultTolerance = 0.1;

/** What `spec.behavior` of an autoscaler says (its `scaleUp.tolerance`, a quantity, say), or the default. */
export function tolerancesOf(behavior: { scaleUp?: object; scaleDown?: object } = {}): Tolerances {
  const of = (rules: { tolerance?: string | number } = {}) =>
    rules.tolerance === undefined ? defaultTolerance : quantityValue(rules.tolerance);
  return { scaleUp: of(behavior.scaleUp), scaleDown: of(behavior.scaleDown) };
}

export interface PodUsage {
  name: string;
  /** Cores requested; a Pod without a request cannot be measured against it. */
  request: number;
  /** Cores in use; undefined while there are no metrics. */
  usage?: number | undefined;
  /** Not ready, or too young for its CPU use to mean anything. */
  unready: boolean;
}

export interface Calculation {
  replicas: number;
  /** Percent of the requests, over the Pods that were measured. */
  utilization: number;
  /** Cores, per measured Pod. */
  averageUsage: number;
}

/** The replicas that would bring utilisation to the target; undefined without any measured Pod. */
export function replicasForUtilization(
  currentReplicas: number,
  targetPercent: number,
  pods: readonly PodUsage[],
  { scaleUp, scaleDown }: Tolerances = tolerancesOf(),
): Calculation | undefined {
  const isWithinTolerance = (ratio: number) => 1 - scaleDown <= ratio && ratio <= 1 + scaleUp;
  const measured = pods.filter((pod) => pod.usage !== undefined && !pod.unready);
  const missing = pods.filter((pod) => pod.usage === undefined && !pod.unready);
  const unready = pods.filter((pod) => pod.unready);
  if (measured.length === 0) return undefined;
  const usageOf = (pod: PodUsage) => pod.usage ?? 0;
  const utilization = percent(measured, usageOf);
  const averageUsage = measured.reduce((sum, pod) => sum + usageOf(pod), 0) / measured.length;
  const result = (replicas: number): Calculation => ({ replicas, utilization, averageUsage });

  const ratio = utilization / targetPercent;
  if (missing.length === 0 && (unready.length === 0 || ratio <= 1)) {
    if (isWithinTolerance(ratio)) return result(currentReplicas);
    return result(Math.ceil(ratio * measured.length));
  }
  // Pods that cannot be measured are taken to damp the step: idle when growing, at target when shrinking.
  const assumed = new Map<PodUsage, number>();
  const growing = ratio > 1;
  for (const pod of missing)
    assumed.set(pod, growing ? 0 : pod.request * Math.max(1, targetPercent / 100));
  if (growing) for (const pod of unready) assumed.set(pod, 0);
  const all = [...measured, ...assumed.keys()];
  const damped = percent(all, (pod) => assumed.get(pod) ?? usageOf(pod)) / targetPercent;
  if (isWithinTolerance(damped) || growing !== damped > 1) return result(currentReplicas);
  const replicas = Math.ceil(damped * all.length);
  if (growing ? replicas < currentReplicas : replicas > currentReplicas)
    return result(currentReplicas);
  return result(replicas);
}

function percent(pods: readonly PodUsage[], usageOf: (pod: PodUsage) => number): number {
  const requested = pods.reduce((sum, pod) => sum + pod.request, 0);
  const used = pods.reduce((sum, pod) => sum + usageOf(pod), 0);
  return Math.trunc((used * 100) / requested);
}
