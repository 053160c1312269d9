import { buildExitCodes, digestInMessage, leftOutInMessage, names } from "@spry/function";
import { type ContainerStatus, controllerOf, type Job, type Pod } from "@spry/kube";
import { isFinished } from "./build-slots.ts";
import { placementProblem } from "./pod-placement.ts";

/** The state of a build. */
export type BuildResult =
  /**
   * `started` once its Pod runs; `detail` is the reason why it makes no progress, if it does not.
   */
  | { kind: "running"; started: boolean; detail?: string }
  /** `leftOut`: sentences about what the source refers to and the image lacks. */
  | { kind: "succeeded"; digest: string; leftOut?: string[] }
  /** The code or its dependencies are wrong: the same build would fail again. */
  | { kind: "refused"; message: string }
  /** The environment failed: another attempt may succeed. */
  | { kind: "broke"; message: string };

/** How much of what a builder wrote goes into a condition. */
const maxOutputLength = 1024;

/**
 * Reads a build's state from its Job and the Job's Pod. The Pod has more details, and earlier; the Job
 * decides if there is no Pod (evicted, deleted, over the time limit).
 */
export function buildResult(job: Job, pods: readonly Pod[]): BuildResult {
  const pod = newest(pods.filter((each) => controllerOf(each)?.uid === job.metadata.uid));
  const container = pod && decisiveContainer(pod);
  const end = container?.state?.terminated;
  if (end)
    return resultOf(end.exitCode, { ...end, memoryLimit: memoryLimitOf(pod, container?.name) });
  const failed = job.status?.conditions?.find(
    ({ type, status }) => type === "Failed" && status === "True",
  );
  if (failed?.reason === "DeadlineExceeded") {
    return { kind: "broke", message: timeLimitMessage(job) };
  }
  if (pod?.status?.phase === "Failed") {
    const message = [pod.status.reason, pod.status.message].filter(Boolean).join(": ");
    return { kind: "broke", message: tail(message) || "the build Pod failed" };
  }
  // The two watches are not synchronized: an existing Pod will report its end in a moment.
  if (pod || !isFinished(job)) return running(pod, container);
  const message = [failed?.reason, failed?.message].filter(Boolean).join(": ");
  return {
    kind: "broke",
    message: tail(message) || "the build Pod was deleted before its result was read",
  };
}

function timeLimitMessage({ spec }: Job): string {
  const seconds = spec?.activeDeadlineSeconds;
  return `build exceeded its time limit${seconds === undefined ? "" : ` (${seconds} s)`}`;
}

/** The builder, unless something that goes before it has failed, or is still on its way. */
function decisiveContainer({ status }: Pod): ContainerStatus | undefined {
  const before = status?.initContainerStatuses?.filter(({ name }) => ownSteps.has(name)) ?? [];
  const unfinished = before.find(({ state }) => state?.terminated?.exitCode !== 0);
  if (unfinished) return unfinished;
  return status?.containerStatuses?.find(({ name }) => name === names.buildContainer);
}

/** Others may have been put into the Pod by a cluster's admission. */
const ownSteps: ReadonlySet<string> = new Set([
  names.fetchContainer,
  names.dependencyContainer,
  names.scriptContainer,
]);

function memoryLimitOf(pod: Pod | undefined, name: string | undefined): string | undefined {
  const { initContainers = [], containers: main = [] } = pod?.spec ?? {};
  const containers = [...initContainers, ...main];
  return containers.find((each) => each.name === name)?.resources?.limits?.["memory"];
}

interface BuildEnd {
  reason?: string;
  message?: string;
  memoryLimit: string | undefined;
}

function resultOf(
  exitCode: number,
  { reason = "Error", message: output = "", memoryLimit }: BuildEnd,
): BuildResult {
  if (exitCode === buildExitCodes.done) {
    const digest = digestInMessage(output);
    const leftOut = leftOutInMessage(output);
    if (digest) return { kind: "succeeded", digest, ...(leftOut.length > 0 && { leftOut }) };
    return { kind: "broke", message: "build succeeded but reported no image digest" };
  }
  if (exitCode === buildExitCodes.refused) {
    return { kind: "refused", message: tail(output) || "the builder reported no reason" };
  }
  if (reason === "OOMKilled") {
    const limit = memoryLimit === undefined ? "" : `, its limit is ${memoryLimit}`;
    const message = `build ran out of memory${limit}: choose a larger profile in spec.resourceConfiguration.build`;
    return { kind: "broke", message: [message, tail(output)].filter(Boolean).join(": ") };
  }
  return { kind: "broke", message: tail(output) || `${reason}, exit code ${exitCode}` };
}

function running(pod: Pod | undefined, container: ContainerStatus | undefined): BuildResult {
  const started = pod?.status?.phase === "Running";
  const { reason, message } = container?.state?.waiting ?? {};
  if (!reason || ["ContainerCreating", "PodInitializing"].includes(reason)) {
    const detail = pod && placementProblem(pod);
    return { kind: "running", started, ...(detail ? { detail } : {}) };
  }
  return { kind: "running", started, detail: tail([reason, message].join(": ")) };
}

function newest(pods: readonly Pod[]): Pod | undefined {
  const born = (pod: Pod) => pod.metadata.creationTimestamp ?? "";
  return pods.toSorted((a, b) => born(b).localeCompare(born(a)))[0];
}

/** The last lines, because the end of an installer's output names the cause. */
export function tail(output: string, maxLength = maxOutputLength): string {
  const text = output.trim();
  if (text.length <= maxLength) return text;
  const cut = text.slice(-maxLength);
  return `…${cut.slice(Math.max(0, cut.indexOf("\n")))}`;
}
