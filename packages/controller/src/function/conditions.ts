import {
  type ConditionType,
  conditionTypes,
  type FunctionCondition,
  type FunctionStatus,
  type Reason,
  statusOfReason,
} from "@spry/function";
import { type Clock, getCondition, timestamp } from "@spry/kube";

/** The state of a condition, and the generation of the Function that it is about. */
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
 * Writes the condition. The one that changed last comes first, as tools expect; an unchanged one keeps
 * its place. `lastTransitionTime` is the time of the last change of status.
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
 * The conditions of `next` that differ from those of `previous`; oldest first. Those of the health are left out: they
 * repeat what one of the others reports.
 */
export function newsOf(previous: FunctionStatus, next: FunctionStatus): FunctionCondition[] {
  const reported = (next.conditions ?? []).filter(({ type }) => isOfContract(type));
  return reported.toReversed().filter((condition) => {
    const before = getCondition(previous.conditions, condition.type);
    return !before || saysOtherThan(before, condition);
  });
}

/** A message with warnings: what works, and needs attention. */
export function withWarnings(text: string, warnings: readonly (string | undefined)[]): string {
  return [text, ...warnings.filter(Boolean).map((warning) => `Warning: ${warning}`)].join(". ");
}

function isOfContract(type: string): boolean {
  return (conditionTypes as readonly string[]).includes(type);
}

function saysOtherThan(a: FunctionCondition, b: FunctionCondition): boolean {
  return a.status !== b.status || a.reason !== b.reason || a.message !== b.message;
}
