import { type Clock, systemClock, timestamp } from "./clock.ts";

/** `meta/v1 Condition`: one observation about an object, kept in its status. */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  observedGeneration?: number;
}

export function getCondition<C extends Condition>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

export function isConditionTrue(
  conditions: readonly Condition[] | undefined,
  type: string,
): boolean {
  return getCondition(conditions, type)?.status === "True";
}

/**
 * The conditions with this one put in the place of its type, or at the end. `lastTransitionTime`
 * says since when the status (not the reason) is what it is, and is kept while that stays the same.
 */
export function setCondition<C extends Condition>(
  conditions: readonly C[] | undefined,
  condition: NoInfer<C>,
  clock: Clock = systemClock,
): C[] {
  const previous = getCondition(conditions, condition.type);
  const kept = previous?.status === condition.status ? previous.lastTransitionTime : undefined;
  const lastTransitionTime = kept ?? condition.lastTransitionTime ?? timestamp(clock);
  const next = { ...condition, lastTransitionTime };
  if (!previous) return [...(conditions ?? []), next];
  return (conditions ?? []).map((each) => (each === previous ? next : each));
}
