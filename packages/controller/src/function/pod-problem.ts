import { names } from "@spry/function";
import { type ContainerStatus, type Pod, type PodTemplateSpec } from "@spry/kube";
import { tail } from "../build/build-result.ts";
import { contains } from "../contains.ts";
import { placementProblem } from "../build/pod-placement.ts";

/** Why Pods do not get ready. */
export interface PodProblem {
  /** Waiting does not help: the user has to change something. */
  fatal: boolean;
  /** The Function's own process has ended with an error. */
  isCrash?: boolean;
  /** The same for as long as the cause is the same, whatever a container is doing at the moment. */
  message: string;
}

/** A stack begins with its cause: all that a kubelet keeps of a container's last words. */
const maxWordsLength = 2048;
/** Where Node.js begins to say that its heap is full; a part of that may be all that is left. */
const heapDump = /^.*(?:<--- Last few GCs --->|FATAL ERROR: |: Mark-Compact )/m;
const usualWaits = ["ContainerCreating", "PodInitializing"];

/**
 * The worst problem among the Pods made from this template; those of older ones are on their way
 * out. Always the same Pod's for as long as it has one, so that the message does not change for
 * nothing.
 */
export function podProblem(
  pods: readonly Pod[],
  template: PodTemplateSpec,
): PodProblem | undefined {
  const nameOf = (pod: Pod) => pod.metadata.name ?? "";
  const problems = pods
    .filter((pod) => !pod.metadata.deletionTimestamp && isMadeFrom(template, pod))
    .sort((a, b) => nameOf(a).localeCompare(nameOf(b)))
    .flatMap((pod) => problemOf(pod) ?? []);
  return problems.find((problem) => problem.fatal) ?? problems[0];
}

/** How many Pods made from this template are ready. */
export function readyPods(pods: readonly Pod[], template: PodTemplateSpec): number {
  return pods.filter(
    (pod) =>
      !pod.metadata.deletionTimestamp &&
      isMadeFrom(template, pod) &&
      pod.status?.containerStatuses?.every(({ ready }) => ready),
  ).length;
}

function isMadeFrom(template: PodTemplateSpec, pod: Pod): boolean {
  const wanted = template.spec?.containers.find(({ name }) => name === names.container);
  const found = pod.spec?.containers.find(({ name }) => name === names.container);
  return (
    contains(found?.image, wanted?.image) &&
    contains(found?.env, wanted?.env) &&
    contains(pod.metadata.annotations, template.metadata?.annotations)
  );
}

function problemOf(pod: Pod): PodProblem | undefined {
  // How its containers ended says only that they were ended.
  if (pod.status?.reason === "Evicted")
    return { fatal: true, message: `Pod evicted: ${pod.status.message?.trim() ?? ""}` };
  for (const status of pod.status?.containerStatuses ?? []) {
    if (status.ready) continue;
    const problem = crashOf(status, pod) ?? waitOf(status);
    if (problem) return problem;
  }
  const message = placementProblem(pod);
  return message === undefined ? undefined : { fatal: false, message };
}

/** A container that ended badly, also while it is being started once more. */
function crashOf(status: ContainerStatus, pod: Pod): PodProblem | undefined {
  const end = status.state?.terminated ?? status.lastState?.terminated;
  if (!end) return undefined;
  // A program that ends well, and again and again, does not serve either.
  if (end.exitCode === 0 && status.state?.waiting?.reason !== "CrashLoopBackOff") return undefined;
  const often = status.restartCount > 0 || status.state?.waiting !== undefined;
  const reason = often ? "CrashLoopBackOff" : (end.reason ?? "Error");
  const isOutOfMemory =
    end.reason === "OOMKilled" || (end.message ?? "").includes("heap out of memory");
  const how = isOutOfMemory ? outOfMemory(pod, status.name) : `exit code ${end.exitCode}`;
  // What follows is the engine's own dump, in which the code has no place.
  const [said = ""] = isOutOfMemory ? (end.message ?? "").split(heapDump) : [end.message];
  const words =
    tail(said, maxWordsLength) || (end.exitCode === 0 ? "the process ended by itself" : "");
  const message = `container ${status.name}: ${reason} (${how})${words ? `: ${words}` : ""}`;
  return { fatal: true, isCrash: true, message };
}

function outOfMemory({ spec }: Pod, name: string): string {
  const limit = spec?.containers.find((each) => each.name === name)?.resources?.limits?.["memory"];
  const which = limit === undefined ? "" : `, its limit is ${limit}`;
  return `out of memory${which}: choose a larger profile in spec.resourceConfiguration.function or in spry.yaml`;
}

function waitOf(status: ContainerStatus): PodProblem | undefined {
  const { reason, message = "" } = status.state?.waiting ?? {};
  if (!reason || usualWaits.includes(reason)) return undefined;
  // The two take turns while an image cannot be pulled.
  const named = reason === "ErrImagePull" ? "ImagePullBackOff" : reason;
  const words = tail(message);
  return { fatal: true, message: `container ${status.name}: ${named}${words ? `: ${words}` : ""}` };
}
