import { type HorizontalPodAutoscaler } from "@spry/kube";
import { type Strategy } from "../resources/resource-type.ts";

type Spec = NonNullable<HorizontalPodAutoscaler["spec"]>;

const percent = (value: number) => ({ type: "Percent", value, periodSeconds: 15 });
const pods = (value: number) => ({ type: "Pods", value, periodSeconds: 15 });

/** `pkg/apis/autoscaling/v2/defaults.go` and `pkg/apis/autoscaling/validation`. */
export const autoscalerStrategy: Strategy = {
  defaults(object) {
    const spec = object.spec as Spec | undefined;
    if (!spec) return;
    spec.minReplicas ??= 1;
    if (!spec.metrics?.length) {
      const target = { type: "Utilization", averageUtilization: 80 };
      spec.metrics = [{ type: "Resource", resource: { name: "cpu", target } }];
    }
    const { behavior } = spec;
    if (!behavior) return;
    behavior.scaleUp = {
      stabilizationWindowSeconds: 0,
      selectPolicy: "Max",
      policies: [pods(4), percent(100)],
      ...behavior.scaleUp,
    };
    behavior.scaleDown = { selectPolicy: "Max", policies: [percent(100)], ...behavior.scaleDown };
  },
  prepare(object, { old }) {
    if (!old) object.status = { desiredReplicas: 0, currentMetrics: null };
  },
  validate(object, errors) {
    const spec = object.spec as Spec | undefined;
    if (!spec) return errors.required("spec");
    const { minReplicas = 1, maxReplicas } = spec;
    if (minReplicas < 1)
      errors.invalid("spec.minReplicas", minReplicas, "must be greater than or equal to 1");
    if ((maxReplicas ?? 0) < 1)
      errors.invalid("spec.maxReplicas", maxReplicas ?? 0, "must be greater than 0");
    else if (maxReplicas < minReplicas) {
      errors.invalid(
        "spec.maxReplicas",
        maxReplicas,
        "must be greater than or equal to `minReplicas`",
      );
    }
    for (const field of ["kind", "name"] as const) {
      if (!spec.scaleTargetRef?.[field]) errors.required(`spec.scaleTargetRef.${field}`);
    }
  },
};
