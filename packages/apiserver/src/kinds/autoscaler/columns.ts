import { type HorizontalPodAutoscaler } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";

export const autoscalerColumns: Column[] = [
  column<HorizontalPodAutoscaler>(
    "Reference",
    ({ spec }) => `${spec?.scaleTargetRef.kind}/${spec?.scaleTargetRef.name}`,
  ),
  column<HorizontalPodAutoscaler>("Targets", autoscalerTargets),
  column<HorizontalPodAutoscaler>("MinPods", ({ spec }) => String(spec?.minReplicas ?? 1)),
  column<HorizontalPodAutoscaler>("MaxPods", ({ spec }) => spec?.maxReplicas ?? 0),
  column<HorizontalPodAutoscaler>("Replicas", ({ status }) => status?.currentReplicas ?? 0),
  ageColumn,
];

type MetricSpec = NonNullable<NonNullable<HorizontalPodAutoscaler["spec"]>["metrics"]>[number];
type MetricStatus = NonNullable<
  NonNullable<HorizontalPodAutoscaler["status"]>["currentMetrics"]
>[number];

/** `pkg/printers/internalversion`, `formatHPAMetrics`. */
function autoscalerTargets({ spec, status }: HorizontalPodAutoscaler): string | undefined {
  const texts = (spec?.metrics ?? []).map((metric, index) =>
    targetText(metric, status?.currentMetrics?.[index]),
  );
  return texts.length > 2
    ? `${texts.slice(0, 2).join(", ")} + ${texts.length - 2} more...`
    : texts.join(", ") || undefined;
}

const unknown = "<unknown>";

function targetText(metric: MetricSpec, current: MetricStatus | undefined): string {
  const resource = metric.resource ?? metric.containerResource;
  if (resource) {
    const value = (current?.resource ?? current?.containerResource)?.current;
    const { averageUtilization, averageValue } = resource.target;
    if (averageUtilization === undefined)
      return `${resource.name}: ${value?.averageValue ?? unknown}/${averageValue}`;
    const used = value?.averageUtilization;
    return `${resource.name}: ${used === undefined ? unknown : `${used}%`}/${averageUtilization}%`;
  }
  if (metric.pods) {
    const { averageValue } = metric.pods.target;
    return `${current?.pods?.current.averageValue ?? unknown}/${averageValue}`;
  }
  const { target } = metric.external ?? metric.object ?? {};
  const value = (current?.external ?? current?.object)?.current;
  if (target?.averageValue !== undefined)
    return `${value?.averageValue ?? unknown}/${target.averageValue} (avg)`;
  return target?.value === undefined ? unknown : `${value?.value ?? unknown}/${target.value}`;
}
