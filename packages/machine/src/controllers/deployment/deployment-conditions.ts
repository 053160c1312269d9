import { type Clock, type Condition, type Deployment, getCondition, timestamp } from "@spry/kube";

export interface DeploymentCondition extends Condition {
  /** When the reason or the progress was written last; the progress deadline counts from it. */
  lastUpdateTime?: string;
}

/** The value of `progressDeadlineSeconds` that means: never. */
const never = 2 ** 31 - 1;

export function hasDeadline({ spec }: Deployment): boolean {
  return deadlineSecondsOf(spec) !== never;
}

export function deadlineSecondsOf(spec: Deployment["spec"]): number {
  return spec?.progressDeadlineSeconds ?? 600;
}

/**
 * The conditions with this one, unless they have it already (`SetDeploymentCondition`). With `renewed`, only its
 * `lastUpdateTime` changes.
 */
export function withCondition(
  conditions: readonly DeploymentCondition[],
  condition: Condition,
  clock: Clock,
  renewed = false,
): DeploymentCondition[] {
  const known = getCondition(conditions, condition.type);
  const hasStatus = known?.status === condition.status;
  if (known && hasStatus && known.reason === condition.reason && !renewed) return [...conditions];
  const now = timestamp(clock);
  const lastTransitionTime = (hasStatus ? known.lastTransitionTime : undefined) ?? now;
  const others = conditions.filter(({ type }) => type !== condition.type);
  return [...others, { ...condition, lastUpdateTime: now, lastTransitionTime }];
}
