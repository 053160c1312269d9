import {
  type ConditionType,
  conditionTypes,
  type FunctionCondition,
  type FunctionStatus,
  type Reason,
  statusOfReason,
} from "@spry/function";
import { type Clock, getCondition, timestamp } from "@spry/kube";

/** What is said of a condition, and about which generation of the Function. */
export interface Observation {
  reason: Reason;
  message: string;
  generation?: number | undefined;
}

export function conditionOf(
  status: FunctionStatus,
  type: ConditionType,
): FunctionCondition | undefined {
  return getCondition(status.conditions, type);
}

/**
 * Says it. The condition that changed last comes first, as tools expect it; one about which nothing
 * new is said keeps its place. `lastTransitionTime` is that of the last change of status.
 */
export function observe(
  status: FunctionStatus,
  type: ConditionType,
  { reason, message, generation }: Observation,
  clock: Clock,
): void {
  const previous = conditionOf(status, type);
  const value = statusOfReason[reason];
  const kept = previous?.status === value ? previous.lastTransitionTime : undefined;
  const next: FunctionCondition = {
    type,
    status: value,
    reason,
    message,
    lastTransitionTime: kept ?? timestamp(clock),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
  const all = status.conditions ?? [];
  status.conditions =
    previous && !saysOtherThan(previous, next)
      ? all.map((each) => (each === previous ? next : each))
      : [next, ...all.filter((each) => each !== previous)];
}

/**
 * The conditions of `next` that tell something that `previous` did not; oldest first. Those of the health repeat what one of
 * the others says.
 */
export function newsOf(previous: FunctionStatus, next: FunctionStatus): FunctionCondition[] {
  const told = (next.conditions ?? []).filter(({ type }) => isOfContract(type));
  return told.toReversed().filter((condition) => {
    const before = getCondition(previous.conditions, condition.type);
    return !before || saysOtherThan(before, condition);
  });
}

/** A message with what does no harm yet. */
export function withWarnings(text: string, warnings: readonly (string | undefined)[]): string {
  return [text, ...warnings.filter(Boolean).map((warning) => `Warning: ${warning}`)].join(". ");
}

function isOfContract(type: string): boolean {
  return (conditionTypes as readonly string[]).includes(type);
}

function saysOtherThan(a: FunctionCondition, b: FunctionCondition): boolean {
  return a.status !== b.status || a.reason !== b.reason || a.message !== b.message;
}
