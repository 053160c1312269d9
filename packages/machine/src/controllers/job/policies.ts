import { type ContainerStatus, type Job, type Pod } from "@spry/kube";
import { isPodTerminating } from "../pod-state.ts";
import { countCommon, countIndexes, type Indexes, parseIndexes } from "./indexes.ts";

type Spec = NonNullable<Job["spec"]>;
type Rule = NonNullable<Spec["podFailurePolicy"]>["rules"][number];

/** What a Job's `podFailurePolicy` makes of a failed Pod (`pkg/controller/job/pod_failure_policy.go`). */
export interface FailureVerdict {
  action?: "FailJob" | "FailIndex" | "Ignore" | "Count";
  /** With `FailJob`: why, for the Job's conditions. */
  message?: string;
}

/** Whether only a Pod that has ended is replaced, so that never more run than asked. */
export function replacesOnlyFailed({ spec }: Job): boolean {
  return spec?.podReplacementPolicy === "Failed" || spec?.podFailurePolicy !== undefined;
}

/** Failed, or deleted before its end, which counts as failed. */
export function isPodFailed(job: Job, pod: Pod): boolean {
  if (pod.status?.phase === "Failed") return true;
  if (replacesOnlyFailed(job)) return false;
  return isPodTerminating(pod) && pod.status?.phase !== "Succeeded";
}

/** The first rule that matches decides. */
export function failureVerdict({ spec }: Job, pod: Pod): FailureVerdict {
  for (const [index, rule] of (spec?.podFailurePolicy?.rules ?? []).entries()) {
    const cause = rule.onExitCodes ? exitCause(rule, pod) : conditionCause(rule, pod);
    if (!cause) continue;
    const action = rule.action as NonNullable<FailureVerdict["action"]>;
    if (action !== "FailJob") return { action };
    return { action, message: `${cause} matching ${action} rule at index ${index}` };
  }
  return {};
}

function exitCause({ onExitCodes }: Rule, { metadata, status }: Pod): string | undefined {
  const matches = ({ name, state }: ContainerStatus) => {
    const code = state?.terminated?.exitCode;
    if (code === undefined || code === 0) return false;
    if (onExitCodes?.containerName !== undefined && onExitCodes.containerName !== name)
      return false;
    return onExitCodes?.values.includes(code) === (onExitCodes?.operator === "In");
  };
  const found = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
  ].find(matches);
  if (!found) return undefined;
  return `Container ${found.name} for pod ${metadata.namespace}/${metadata.name} failed with exit code ${found.state?.terminated?.exitCode}`;
}

function conditionCause({ onPodConditions }: Rule, { metadata, status }: Pod): string | undefined {
  const found = status?.conditions?.find((condition) =>
    onPodConditions?.some(
      (pattern) =>
        pattern.type === condition.type && (pattern.status ?? "True") === condition.status,
    ),
  );
  return found && `Pod ${metadata.namespace}/${metadata.name} has condition ${found.type}`;
}

/** Which rule of the Job's `successPolicy` is met, in words (`pkg/controller/job/success_policy.go`). */
export function successVerdict({ spec }: Job, succeeded: Indexes): string | undefined {
  if (succeeded.length === 0) return undefined;
  for (const [index, rule] of (spec?.successPolicy?.rules ?? []).entries()) {
    const required = parseIndexes(rule.succeededIndexes, spec?.completions ?? 0);
    if (rule.succeededIndexes !== undefined && required.length === 0) continue;
    const done =
      rule.succeededIndexes === undefined
        ? countIndexes(succeeded)
        : countCommon(required, succeeded);
    const hasAll = rule.succeededIndexes !== undefined && done === countIndexes(required);
    if (hasAll || (rule.succeededCount !== undefined && done >= rule.succeededCount))
      return `Matched rules at index ${index}`;
  }
  return undefined;
}
