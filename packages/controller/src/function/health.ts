/** What tools that know nothing of Functions wait for: kstatus' `Reconciling` and `Stalled`. */
import {
  conditionTypes,
  type FunctionCondition,
  type FunctionStatus,
  type HealthConditionType,
  healthConditionTypes,
  type Reason,
} from "@spry/function";
import { type Clock, getCondition, timestamp } from "@spry/kube";
import { conditionOf } from "./conditions.ts";

/** The user must change something: the controller does not try again by itself. */
const needsChange: ReadonlySet<Reason> = new Set([
  "InvalidFunctionSpec",
  "JobFailed",
  "DeploymentFailed",
]);

interface Health {
  type: HealthConditionType;
  /** The condition of the contract that is not True. */
  because: Pick<FunctionCondition, "reason" | "message">;
}

/**
 * Derives the health of the desired generation from the three conditions of the contract and puts it behind them: neither
 * condition when all are True for this generation, else one of the two, with the reason and the message of the first that
 * is not. A build that is retried by itself is on its way, and so is a Git server that does not answer.
 */
export function observeHealth(status: FunctionStatus, generation: number, clock: Clock): void {
  const own = (status.conditions ?? []).filter(({ type }) => !isHealth(type));
  const health = healthOf(status, generation);
  if (!health) {
    status.conditions = own;
    return;
  }
  const { type, because } = health;
  const previous = getCondition(status.conditions, type);
  const { reason, message } = because;
  const lastTransitionTime = previous?.lastTransitionTime ?? timestamp(clock);
  const next = { type, status: "True" as const, reason, message, lastTransitionTime };
  status.conditions = [...own, { ...next, observedGeneration: generation }];
}

function healthOf(status: FunctionStatus, generation: number): Health | undefined {
  for (const type of conditionTypes) {
    const condition = conditionOf(status, type);
    const isCurrent = (condition?.observedGeneration ?? generation) === generation;
    if (condition?.status === "True" && isCurrent) continue;
    const because = condition ?? {
      reason: "DeploymentWaiting",
      message: `${type} is not yet known`,
    };
    const isRetried = type === "BuildReady" && status.build?.retryAfter !== undefined;
    const isStalled =
      condition?.status === "False" && needsChange.has(condition.reason) && !isRetried;
    return { type: isStalled ? "Stalled" : "Reconciling", because };
  }
  return undefined;
}

export function isHealth(type: FunctionCondition["type"]): type is HealthConditionType {
  return (healthConditionTypes as readonly string[]).includes(type);
}
