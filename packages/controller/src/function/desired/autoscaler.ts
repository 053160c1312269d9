import { childLabelsOf, type Function, functions, names } from "@spry/function";
import { apiVersionOf, type HorizontalPodAutoscaler } from "@spry/kube";
import { type DesiredChild } from "../../children.ts";

/** Undefined where there is nothing to scale: no bounds, or bounds that leave no choice. */
export function desiredAutoscaler(
  fn: Function,
  targetCpuUtilization: number,
): (HorizontalPodAutoscaler & DesiredChild) | undefined {
  const { scaleConfig } = fn.spec;
  if (!scaleConfig || scaleConfig.minReplicas === scaleConfig.maxReplicas) return undefined;
  const { name = "", namespace = "" } = fn.metadata;
  return {
    metadata: { name: names.autoscaler(name), namespace, labels: childLabelsOf(fn) },
    spec: {
      // The Function, not its Deployment: what the scaler decides is then in the spec, and stays.
      scaleTargetRef: { apiVersion: apiVersionOf(functions), kind: functions.kind, name },
      minReplicas: scaleConfig.minReplicas,
      maxReplicas: scaleConfig.maxReplicas,
      metrics: [
        {
          type: "Resource",
          resource: {
            name: "cpu",
            target: { type: "Utilization", averageUtilization: targetCpuUtilization },
          },
        },
      ],
    },
  };
}
