import { type HorizontalPodAutoscaler } from "@spry/kube";
import { type Strategy } from "../../resources/resource-type.ts";
import { validateAutoscaler } from "./validation.ts";

type Spec = NonNullable<HorizontalPodAutoscaler["spec"]>;

const percent = (value: number) => ({ type: "Percent", value, periodSeconds: 15 });
const pods = (value: number) => ({ type: "Pods", value, periodSeconds: 15 });

/** The metric that version 1 knows: use of the CPU in percent of what is requested. */
export const cpu = (averageUtilization: number) => ({
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization } },
});

/** `pkg/apis/autoscaling/v2/defaults.go` and `pkg/apis/autoscaling/validation`. */
export const autoscalerStrategy: Strategy = {
  defaults(object) {
    const spec = object.spec as Spec | undefined;
    if (!spec) return;
    spec.minReplicas ??= 1;
    // Version 1 has no metrics; it gets them when it is stored as version 2.
    if (object.apiVersion === "autoscaling/v2" && !spec.metrics?.length) spec.metrics = [cpu(80)];
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
