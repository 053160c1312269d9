import { type ContainerStatus, isConditionTrue, type Pod } from "@spry/kube";
import { ageColumn, column, type Column, wide } from "../../table/column.ts";
import { since } from "../../table/duration.ts";

export const podColumns: Column[] = [
  column<Pod>("Ready", readyContainers),
  column<Pod>("Status", podStatus),
  column<Pod>("Restarts", restarts),
  ageColumn,
  column<Pod>("IP", ({ status }) => status?.podIP, wide),
  column<Pod>("Node", ({ spec }) => spec?.nodeName, wide),
  column<Pod>("Nominated Node", ({ status }) => status?.nominatedNodeName, wide),
  column<Pod>("Readiness Gates", readinessGates, wide),
];

function readyContainers({ spec, status }: Pod): string {
  const ready = (status?.containerStatuses ?? []).filter((each) => each.ready).length;
  return `${ready}/${spec?.containers.length ?? 0}`;
}

/** What `kubectl get pods` calls a Pod's state: its phase, or what is the matter with a container. */
function podStatus(pod: Pod): string {
  const { metadata, status } = pod;
  let reason = status?.reason || status?.phase || "Unknown";
  const initializing = initStatus(pod);
  if (initializing) reason = initializing;
  else {
    let hasRunning = false;
    for (const each of (status?.containerStatuses ?? []).toReversed()) {
      const shown = containerReason(each);
      if (shown) reason = shown;
      else if (each.ready && each.state?.running) hasRunning = true;
    }
    // One container has completed while another still runs.
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
