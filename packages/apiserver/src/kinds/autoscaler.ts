import { type HorizontalPodAutoscaler } from "@spry/kube";
import { type Strategy } from "../resources/resource-type.ts";
import { validateAutoscaler } from "../resources/validation/autoscaler.ts";

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
  validate: (object, errors) => validateAutoscaler(object.spec as Spec, errors),
};
