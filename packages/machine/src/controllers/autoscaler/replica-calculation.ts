import { quantityValue } from "@spry/kube";
import { type PodGroups } from "./pod-groups.ts";

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

/** What the Pods are to use: percent of what they request, or thousandths of the resource's unit each. */
export type Target =
  | { utilization: number; requests: ReadonlyMap<string, number> }
  | { averageMilli: number };

export interface Calculation {
  replicas: number;
  /** Percent of the requests, over the Pods that were measured; for a target of that kind. */
  utilization?: number;
  /** Thousandths of the resource's unit, per measured Pod. */
  averageMilli: number;
}

/** The replicas that would bring the use to the target. Throws without any measured Pod. */
export function replicasFor(
  currentReplicas: number,
  target: Target,
  { measured, unready, missing }: PodGroups,
  tolerances: Tolerances = tolerancesOf(),
): Calculation {
  if (measured.size === 0)
    throw new Error("did not receive metrics for targeted pods (pods might be unready)");
  const isWithinTolerance = (ratio: number) => isWithin(tolerances, ratio);
  const ratioOf = (values: ReadonlyMap<string, number>) =>
    "averageMilli" in target
      ? averageOf(values) / target.averageMilli
      : percentOf(values, target.requests) / target.utilization;
  const ratio = ratioOf(measured);
  const result = (replicas: number): Calculation => ({
    replicas,
    averageMilli: averageOf(measured),
    ...("requests" in target ? { utilization: percentOf(measured, target.requests) } : {}),
  });
  const isGrowing = ratio > 1;
  const growsWithUnready = isGrowing && unready.length > 0;
  if (missing.length === 0 && !growsWithUnready)
    return result(isWithinTolerance(ratio) ? currentReplicas : Math.ceil(ratio * measured.size));
  // Pods that cannot be measured are taken to damp the step: idle when growing, at the target when shrinking.
  const damped = new Map(measured);
  if (ratio < 1) for (const name of missing) damped.set(name, fullUseOf(name, target));
  if (isGrowing) for (const name of [...missing, ...unready]) damped.set(name, 0);
  const dampedRatio = ratioOf(damped);
  const turns = (ratio < 1 && dampedRatio > 1) || (isGrowing && dampedRatio < 1);
  if (isWithinTolerance(dampedRatio) || turns) return result(currentReplicas);
  const replicas = Math.ceil(dampedRatio * damped.size);
  const turnsBack = dampedRatio < 1 ? replicas > currentReplicas : replicas < currentReplicas;
  return result(turnsBack ? currentReplicas : replicas);
}

const maxReplicas = 2 ** 31 - 1;

/** For a value of something outside of the Pods, in relation to its target: as many times as many ready Pods. */
export function replicasForValue(
  currentReplicas: number,
  ratio: number,
  readyPods: () => number,
  tolerances: Tolerances,
): number {
  if (isWithin(tolerances, ratio)) return currentReplicas;
  return Math.min(Math.ceil(ratio * readyPods()), maxReplicas);
}

/** For a value of something outside of the Pods that is divided among them: so many that each has its target. */
export function replicasForAverage(
  countedReplicas: number,
  value: number,
  target: number,
  tolerances: Tolerances,
): number {
  if (isWithin(tolerances, value / (target * countedReplicas))) return countedReplicas;
  return Math.min(Math.ceil(value / target), maxReplicas);
}

function isWithin({ scaleUp, scaleDown }: Tolerances, ratio: number): boolean {
  return 1 - scaleDown <= ratio && ratio <= 1 + scaleUp;
}

/** What a Pod is taken to use that should use as much as it may, or as the target asks for if that is more. */
function fullUseOf(name: string, target: Target): number {
  if ("averageMilli" in target) return target.averageMilli;
  const request = target.requests.get(name) ?? 0;
  return Math.trunc((request * Math.max(100, target.utilization)) / 100);
}

function averageOf(values: ReadonlyMap<string, number>): number {
  return Math.trunc(sumOf(values.values()) / values.size);
}

function percentOf(
  values: ReadonlyMap<string, number>,
  requests: ReadonlyMap<string, number>,
): number {
  const requested = sumOf([...values.keys()].map((name) => requests.get(name) ?? 0));
  if (requested === 0) throw new Error("no metrics returned matched known pods");
  return Math.trunc((sumOf(values.values()) * 100) / requested);
}

function sumOf(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}
