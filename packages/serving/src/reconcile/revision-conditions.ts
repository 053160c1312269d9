import { type ContainerStatus, type Deployment, type Pod } from "@spry/kube";
import { type LivingConditions } from "../conditions.ts";
import { quoted } from "./context.ts";

export const resourcesAvailable = "ResourcesAvailable";
export const containerHealthy = "ContainerHealthy";
export const active = "Active";
const progressDeadlineExceeded = "ProgressDeadlineExceeded";

/** Reasons for which a container waits because its image cannot be had. */
const imageReasons = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];

/**
 * What Deployment and Pods say of a Revision's health (knative.dev/serving/pkg/reconciler/revision/reconcile_resources.go).
 * Knative asks the registry whether an image is there; here, Pods say it.
 */
export function reflectDeployment(
  conditions: LivingConditions,
  deployment: Deployment,
  pods: readonly Pod[],
): void {
  reflectProgress(conditions, deployment);
  const { availableReplicas = 0, readyReplicas = 0 } = deployment.status ?? {};
  if ((deployment.spec?.replicas ?? 0) > 0 && availableReplicas === 0)
    reflectPods(conditions, deployment, pods);
  if (readyReplicas > 0) conditions.markTrue(containerHealthy);
}

function reflectProgress(conditions: LivingConditions, { status }: Deployment): void {
  const find = (type: string) => status?.conditions?.find((each) => each.type === type);
  const failure = find("ReplicaFailure");
  const progressing = find("Progressing");
  if (failure?.status === "True")
    conditions.markFalse(resourcesAvailable, failure.reason ?? "", failure.message ?? "");
  else if (progressing?.status === "False")
    conditions.markFalse(resourcesAvailable, progressing.reason ?? "", progressing.message ?? "");
  else if (progressing?.status === "True") conditions.markTrue(resourcesAvailable);
  else conditions.markUnknown(resourcesAvailable, progressing?.reason ?? "Deploying");
}

function reflectPods(
  conditions: LivingConditions,
  deployment: Deployment,
  pods: readonly Pod[],
): void {
  const [pod] = pods.filter(({ metadata }) => !metadata.deletionTimestamp);
  if (!pod) return;
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status === "False")
    conditions.markFalse(resourcesAvailable, scheduled.reason ?? "", scheduled.message ?? "");
  for (const status of pod.status?.containerStatuses ?? []) {
    const ended = status.lastState?.terminated ?? status.state?.terminated;
    const waiting = status.state?.waiting;
    if (waiting && imageReasons.includes(waiting.reason ?? "")) {
      // As Knative has it: a tag would have been resolved before there are Pods, a digest is left to the nodes.
      const { containers = [] } = deployment.spec?.template.spec ?? {};
      const image = containers.find(({ name }) => name === status.name)?.image;
      if (image?.includes("@sha256:"))
        return conditions.markFalse(
          resourcesAvailable,
          waiting.reason ?? "",
          waiting.message ?? waiting.reason ?? "",
        );
      const message = `Unable to fetch image ${quoted(status.image)}: ${waiting.message ?? ""}`;
      return conditions.markFalse(containerHealthy, "ContainerMissing", message);
    }
    if (ended) return markExit(conditions, ended);
    if (waiting && hasTimedOut(deployment))
      return conditions.markFalse(
        resourcesAvailable,
        waiting.reason ?? "",
        waiting.message ?? waiting.reason ?? "",
      );
  }
}

type Terminated = NonNullable<NonNullable<ContainerStatus["state"]>["terminated"]>;

function markExit(conditions: LivingConditions, { exitCode, message = "" }: Terminated): void {
  const words = exitCode === 0 && message === "" ? "container exited with no error" : message;
  conditions.markFalse(containerHealthy, `ExitCode${exitCode}`, `Container failed with: ${words}`);
}

function hasTimedOut({ status }: Deployment): boolean {
  return (status?.conditions ?? []).some(
    (each) =>
      each.type === "Progressing" &&
      each.status === "False" &&
      each.reason === progressDeadlineExceeded,
  );
}

/**
 * Whether a Revision takes requests now, and whether it has ever had the Pods to begin with: until then it is not ready
 * (`PropagateAutoscalerStatus` and the table of `computeActiveCondition` of Knative).
 */
export function reflectScale(
  conditions: LivingConditions,
  deployment: Deployment,
  { initialized, minReady }: { initialized: boolean; minReady: number },
): void {
  const desired = deployment.spec?.replicas ?? 0;
  const ready = deployment.status?.readyReplicas ?? 0;
  const isStarted = initialized || ready >= minReady;
  const hasFailed = conditions.isFalse(resourcesAvailable) || conditions.isFalse(containerHealthy);
  if (isStarted && !hasFailed) {
    conditions.markTrue(resourcesAvailable);
    conditions.markTrue(containerHealthy);
  } else if (!isStarted && conditions.isTrue(resourcesAvailable)) {
    conditions.markUnknown(resourcesAvailable, "Deploying");
  }
  if (desired === 0 || minReady === 0) {
    const wasStarting = conditions.get(active)?.status === "Unknown" && minReady > 0;
    if (!isStarted && !hasFailed)
      conditions.markFalse(
        resourcesAvailable,
        progressDeadlineExceeded,
        "Initial scale was never achieved",
      );
    if (wasStarting && ready < minReady)
      conditions.markFalse(active, "TimedOut", "The target could not be activated.");
    else if (conditions.get(active)?.reason !== "TimedOut")
      conditions.markFalse(active, "NoTraffic", "The target is not receiving traffic.");
  } else if (ready < minReady) {
    conditions.markUnknown(
      active,
      "Queued",
      "Requests to the target are being buffered as resources are provisioned.",
    );
  } else conditions.markTrue(active);
}
