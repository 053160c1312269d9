import { knative, knativeNames, type Revision } from "@spry/function";
import { controllerRef, type HorizontalPodAutoscaler, isNotFound, resources } from "@spry/kube";
import { autoscalingKeys, classes, durationIn, numberIn, textIn } from "../annotations.ts";
import { scaleSpecOf } from "../scaler/scale-spec.ts";
import { type Settings } from "../settings/settings.ts";
import { type Context } from "./context.ts";

const unlimited = 2 ** 31 - 1;
/** Of the CPU that is asked for, where the template says nothing. */
const defaultUtilization = 80;

/** What scales a Revision of the class `hpa`; undefined for those that requests scale. */
export function desiredPodAutoscaler(
  revision: Revision,
  settings: Settings,
): HorizontalPodAutoscaler | undefined {
  const kind = textIn(revision, autoscalingKeys.class) ?? settings.autoscaler.class;
  if (kind !== classes.hpa) return undefined;
  const { name = "", namespace = "", labels } = revision.metadata;
  const { minScale, maxScale } = scaleSpecOf(revision, settings.autoscaler);
  const seconds = (durationIn(revision, autoscalingKeys.window) ?? 0) / 1000;
  const rules = { stabilizationWindowSeconds: seconds };
  return {
    metadata: {
      name,
      namespace,
      ...(labels ? { labels } : {}),
      ownerReferences: [controllerRef(knative.revisions, revision)],
    },
    spec: {
      scaleTargetRef: {
        apiVersion: "apps/v1",
        kind: "Deployment",
        name: knativeNames.deployment(name),
      },
      // There is none that goes to zero: nothing would wake it.
      minReplicas: Math.max(1, minScale),
      maxReplicas: maxScale || unlimited,
      metrics: [metricOf(revision)],
      ...(seconds > 0 ? { behavior: { scaleUp: rules, scaleDown: rules } } : {}),
    },
  };
}

type Metric = NonNullable<NonNullable<HorizontalPodAutoscaler["spec"]>["metrics"]>[number];

/** knative.dev/serving/pkg/reconciler/autoscaling/hpa/resources: memory in MiB, what is custom as an average of Pods. */
function metricOf(revision: Revision): Metric {
  const name = textIn(revision, autoscalingKeys.metric) ?? "cpu";
  const target = numberIn(revision, autoscalingKeys.target);
  if (name === "cpu") {
    const averageUtilization = Math.ceil(target ?? defaultUtilization);
    return {
      type: "Resource",
      resource: { name, target: { type: "Utilization", averageUtilization } },
    };
  }
  const average = Math.floor(target ?? 1);
  if (name === "memory") {
    const averageValue = `${average}Mi`;
    return { type: "Resource", resource: { name, target: { type: "AverageValue", averageValue } } };
  }
  const averageValue = String(average);
  return {
    type: "Pods",
    pods: { metric: { name }, target: { type: "AverageValue", averageValue } },
  };
}

/** Creates it once: a Revision does not change. */
export async function ensurePodAutoscaler(
  { client, settings }: Context,
  revision: Revision,
): Promise<void> {
  const desired = desiredPodAutoscaler(revision, settings);
  if (!desired) return;
  const { namespace, name } = revision.metadata;
  try {
    await client.get(resources.horizontalPodAutoscalers, { namespace, name: name ?? "" });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await client.create(resources.horizontalPodAutoscalers, desired);
  }
}
