import { defaultRuntime } from "./runtimes.ts";
import { type Function, type FunctionSpec } from "./types.ts";

/**
 * The Function with what it leaves out. `replicas` is moved into the bounds of `scaleConfig` only
 * from outside of them: inside, it is a scaler's decision and stays.
 */
export function defaultFunction(fn: Function): Function {
  // Validation refuses what is not a Function.
  if (typeof fn.spec !== "object" || fn.spec === null || Array.isArray(fn.spec)) return fn;
  const spec: FunctionSpec = {
    ...fn.spec,
    runtime: fn.spec.runtime ?? defaultRuntime,
    replicas: replicasOf(fn.spec),
  };
  return { ...fn, spec };
}

function replicasOf({ replicas = 1, scaleConfig }: FunctionSpec): number {
  if (!scaleConfig) return replicas;
  const { minReplicas, maxReplicas } = scaleConfig;
  // Validation refuses bounds that contradict each other.
  if (!(minReplicas <= maxReplicas)) return replicas;
  return Math.min(Math.max(replicas, minReplicas), maxReplicas);
}
