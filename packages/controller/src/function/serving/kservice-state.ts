import { type KService } from "@spry/function";
import { type Condition, getCondition } from "@spry/kube";
import { type PodProblem } from "../pod-problem.ts";
import { type Finding } from "../rollout.ts";

/** Whether the Route leads to the Revision that is desired: it, and nothing older, has answered for its readiness. */
export function isServing(kservice: KService): boolean {
  const { status, metadata } = kservice;
  const isCurrent = (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  return isCurrent && conditionOf(kservice, "Ready")?.status === "True";
}

export function conditionOf(
  { status }: KService,
  type: "Ready" | "ConfigurationsReady" | "RoutesReady",
): Condition | undefined {
  return getCondition(status?.conditions, type);
}

/** A Knative Service's conditions as the contract's `Running` (docs/compatibility.md#serving), with what its newest Pods report. */
export function judgeServing(kservice: KService, problem: PodProblem | undefined): Finding {
  const { name = "", generation = 0 } = kservice.metadata;
  const what = `Knative Service ${name}`;
  const { status } = kservice;
  const isCurrent = (status?.observedGeneration ?? 0) >= generation;
  if (!isCurrent) {
    const first = generation === 1;
    return {
      reason: first ? "DeploymentCreated" : "DeploymentUpdated",
      message: `${what} ${first ? "created" : "updated"}`,
    };
  }
  if (isServing(kservice)) {
    const message = `${what} is ready: ${status?.latestReadyRevisionName}`;
    return { reason: "DeploymentReady", message };
  }
  const failed = (["ConfigurationsReady", "RoutesReady"] as const)
    .map((type) => conditionOf(kservice, type))
    .find((condition) => condition?.status === "False");
  // Code that crashes has failed, also while an older Revision serves.
  if (failed || problem?.isCrash) {
    const why = problem?.message ?? failed?.message ?? failed?.reason;
    return { reason: "DeploymentFailed", message: `${what} failed: ${why}` };
  }
  const why = problem?.message ?? conditionOf(kservice, "Ready")?.message;
  return {
    reason: "DeploymentWaiting",
    message: `${what} is not ready yet${why ? `: ${why}` : ""}`,
  };
}
