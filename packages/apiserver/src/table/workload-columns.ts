import {
  type Container,
  type ContainerStatus,
  type Deployment,
  formatLabelSelector,
  type HorizontalPodAutoscaler,
  isConditionTrue,
  type Job,
  type LabelSelector,
  type Pod,
  type ReplicaSet,
  requirementsOf,
  type UnknownObject,
} from "@spry/kube";
import { ageColumn, type Column, column } from "./column.ts";
import { humanDuration, since } from "./duration.ts";

const wide = { wide: true };
const integer = { type: "integer" } as const;

type Templated = UnknownObject & {
  spec?: { template?: { spec?: { containers?: Container[] } }; selector?: LabelSelector };
};

const containerColumns: Column[] = [
  column<Templated>(
    "Containers",
    ({ spec }) => names(spec?.template?.spec?.containers, "name"),
    wide,
  ),
  column<Templated>("Images", ({ spec }) => names(spec?.template?.spec?.containers, "image"), wide),
];
interface Scheduled {
  spec?: { jobTemplate?: { spec?: Templated["spec"] } };
}

/** The same, and the selector, of the Jobs that a CronJob makes. */
const jobTemplateColumns: Column[] = [
  column<Scheduled>(
    "Containers",
    ({ spec }) => names(spec?.jobTemplate?.spec?.template?.spec?.containers, "name"),
    wide,
  ),
  column<Scheduled>(
    "Images",
    ({ spec }) => names(spec?.jobTemplate?.spec?.template?.spec?.containers, "image"),
    wide,
  ),
  column<Scheduled>(
    "Selector",
    ({ spec }) => selectorText(spec?.jobTemplate?.spec?.selector),
    wide,
  ),
];
const selectorColumn = column<Templated>(
  "Selector",
  ({ spec }) => selectorText(spec?.selector),
  wide,
);

function names(containers: Container[] | undefined, field: "name" | "image"): string | undefined {
  return containers?.map((container) => container[field] ?? "").join(",") || undefined;
}

export function selectorText(selector: LabelSelector | undefined): string | undefined {
  return selector && (formatLabelSelector(requirementsOf(selector)) || undefined);
}

export const workloadColumns: Record<string, Column[]> = {
  Pod: [
    column<Pod>("Ready", readyContainers),
    column<Pod>("Status", podStatus),
    column<Pod>("Restarts", restarts),
    ageColumn,
    column<Pod>("IP", ({ status }) => status?.podIP, wide),
    column<Pod>("Node", ({ spec }) => spec?.nodeName, wide),
    column<Pod>("Nominated Node", ({ status }) => status?.nominatedNodeName, wide),
    column<Pod>("Readiness Gates", readinessGates, wide),
  ],
  Deployment: [
    column<Deployment>(
      "Ready",
      ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
    ),
    column<Deployment>("Up-to-date", ({ status }) => status?.updatedReplicas ?? 0),
    column<Deployment>("Available", ({ status }) => status?.availableReplicas ?? 0),
    ageColumn,
    ...containerColumns,
    selectorColumn,
  ],
  ReplicaSet: [
    column<ReplicaSet>("Desired", ({ spec }) => spec?.replicas ?? 0, integer),
    column<ReplicaSet>("Current", ({ status }) => status?.replicas ?? 0, integer),
    column<ReplicaSet>("Ready", ({ status }) => status?.readyReplicas ?? 0, integer),
    ageColumn,
    ...containerColumns,
    selectorColumn,
  ],
  ControllerRevision: [
    column("Controller", ({ metadata }: UnknownObject) => {
      const owner = metadata.ownerReferences?.find((each) => each.controller);
      return owner && `${owner.kind.toLowerCase()}/${owner.name}`;
    }),
    column("Revision", ({ revision }: UnknownObject) => revision as number),
    ageColumn,
  ],
  Job: [
    column<Job>("Status", jobStatus),
    column<Job>("Completions", completions),
    column<Job>("Duration", duration),
    ageColumn,
    ...containerColumns,
    selectorColumn,
  ],
  CronJob: [
    column("Schedule", ({ spec }: UnknownObject) => (spec as { schedule?: string }).schedule),
    column("Timezone", ({ spec }: UnknownObject) => (spec as { timeZone?: string }).timeZone),
    column(
      "Suspend",
      ({ spec }: UnknownObject) => ((spec as { suspend?: boolean }).suspend ? "True" : "False"),
      { type: "boolean" },
    ),
    column(
      "Active",
      ({ status }: UnknownObject) => (status as { active?: [] } | undefined)?.active?.length ?? 0,
      integer,
    ),
    column("Last Schedule", ({ status }: UnknownObject) => {
      const last = (status as { lastScheduleTime?: string } | undefined)?.lastScheduleTime;
      return last && since(last);
    }),
    ageColumn,
    ...jobTemplateColumns,
  ],
  HorizontalPodAutoscaler: [
    column<HorizontalPodAutoscaler>(
      "Reference",
      ({ spec }) => `${spec?.scaleTargetRef.kind}/${spec?.scaleTargetRef.name}`,
    ),
    column<HorizontalPodAutoscaler>("Targets", autoscalerTargets),
    column<HorizontalPodAutoscaler>("MinPods", ({ spec }) => String(spec?.minReplicas ?? 1)),
    column<HorizontalPodAutoscaler>("MaxPods", ({ spec }) => spec?.maxReplicas ?? 0),
    column<HorizontalPodAutoscaler>("Replicas", ({ status }) => status?.currentReplicas ?? 0),
    ageColumn,
  ],
};

function readyContainers({ spec, status }: Pod): string {
  const ready = (status?.containerStatuses ?? []).filter((each) => each.ready).length;
  return `${ready}/${spec?.containers.length ?? 0}`;
}

/** What `kubectl get pods` calls a Pod's state: its phase, or what is the matter with a container. */
export function podStatus(pod: Pod): string {
  const { metadata, status } = pod;
  let reason = status?.reason || status?.phase || "Unknown";
  const initializing = initStatus(pod);
  if (initializing) reason = initializing;
  else {
    let hasRunning = false;
    for (const each of (status?.containerStatuses ?? []).toReversed()) {
      const told = containerReason(each);
      if (told) reason = told;
      else if (each.ready && each.state?.running) hasRunning = true;
    }
    // One container has completed while another goes on.
    if (reason === "Completed" && hasRunning) {
      reason = isConditionTrue(status?.conditions as never, "Ready") ? "Running" : "NotReady";
    }
  }
  if (!metadata.deletionTimestamp) return reason;
  return status?.reason === "NodeLost" ? "Unknown" : "Terminating";
}

function containerReason({ state }: ContainerStatus): string | undefined {
  if (state?.waiting?.reason) return state.waiting.reason;
  const { terminated } = state ?? {};
  if (!terminated) return undefined;
  if (terminated.reason) return terminated.reason;
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`;
}

function initStatus({ spec, status }: Pod): string | undefined {
  const statuses = status?.initContainerStatuses ?? [];
  for (const [index, each] of statuses.entries()) {
    const { terminated, waiting } = each.state ?? {};
    if (terminated?.exitCode === 0) continue;
    if (terminated) return `Init:${containerReason(each)}`;
    if (waiting?.reason && waiting.reason !== "PodInitializing") return `Init:${waiting.reason}`;
    return `Init:${index}/${spec?.initContainers?.length ?? 0}`;
  }
  return undefined;
}

function restarts({ status }: Pod): string {
  const statuses = status?.containerStatuses ?? [];
  const count = statuses.reduce((sum, each) => sum + (each.restartCount ?? 0), 0);
  const last = statuses
    .map((each) => each.lastState?.terminated?.finishedAt ?? "")
    .sort()
    .at(-1);
  return count > 0 && last ? `${count} (${since(last)} ago)` : String(count);
}

function readinessGates({ spec, status }: Pod): string | undefined {
  const gates = spec?.readinessGates ?? [];
  if (gates.length === 0) return undefined;
  const met = gates.filter((gate) =>
    isConditionTrue(status?.conditions as never, gate.conditionType),
  );
  return `${met.length}/${gates.length}`;
}

function jobStatus({ spec, status, metadata }: Job): string {
  const is = (type: string) => isConditionTrue(status?.conditions as never, type);
  if (is("Complete")) return "Complete";
  if (is("Failed")) return "Failed";
  if (metadata.deletionTimestamp) return "Terminating";
  if (is("Suspended") || spec?.suspend) return "Suspended";
  if (is("FailureTarget")) return "FailureTarget";
  return is("SuccessCriteriaMet") ? "SuccessCriteriaMet" : "Running";
}

function completions({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec?.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const parallelism = spec?.parallelism ?? 1;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function duration({ status }: Job): string {
  if (!status?.startTime) return "";
  const end = status.completionTime ? Date.parse(status.completionTime) : Date.now();
  return humanDuration(end - Date.parse(status.startTime));
}

function autoscalerTargets({ spec, status }: HorizontalPodAutoscaler): string | undefined {
  const texts = (spec?.metrics ?? []).map((metric, index) => {
    const source = metric.resource ?? metric.containerResource;
    if (!source) return "<unknown>";
    const current = status?.currentMetrics?.[index];
    const value = (current?.resource ?? current?.containerResource)?.current;
    const { averageUtilization, averageValue } = source.target;
    const shown =
      averageUtilization === undefined
        ? `${value?.averageValue ?? "<unknown>"}/${averageValue}`
        : `${value?.averageUtilization === undefined ? "<unknown>" : `${value.averageUtilization}%`}/${averageUtilization}%`;
    return `${source.name}: ${shown}`;
  });
  return texts.length > 2
    ? `${texts.slice(0, 2).join(", ")} + ${texts.length - 2} more...`
    : texts.join(", ") || undefined;
}
