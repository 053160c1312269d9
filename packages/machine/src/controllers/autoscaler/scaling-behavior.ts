import { type HorizontalPodAutoscaler } from "@spry/kube";

type Behavior = NonNullable<NonNullable<HorizontalPodAutoscaler["spec"]>["behavior"]>;
type Rules = NonNullable<Behavior["scaleUp"]>;

/** A change of the replica count, or a recommendation, and when it was made. */
export interface Dated {
  at: number;
  value: number;
}

/** What an autoscaler remembers between passes. Lost with the process, as in Kubernetes. */
export interface ScalingHistory {
  recommendations: Dated[];
  /** Replicas added (positive) or removed (negative). */
  changes: Dated[];
}

const defaultUp = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
};
const defaultDown = {
  stabilizationWindowSeconds: 300,
  selectPolicy: "Max",
  policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
};
/** The longest window or period that the API allows. */
const memoryMs = 3_600_000;
/** One per pass; an hour of passes, with room for the extra ones that changes of the spec bring. */
const maxRemembered = 2000;

export interface ScalingDecision {
  replicas: number;
  /** For the condition `ScalingLimited`: whether the bounds or the pace hold the count. */
  limit: { isLimited: boolean; reason: string; message: string };
  /** For `AbleToScale`: whether recent recommendations hold the count. */
  stabilized: { reason: string; message: string };
}

type Spec = NonNullable<HorizontalPodAutoscaler["spec"]>;

/** From the count that the metric asks for to the next count: stabilisation windows, rate policies, then min and max. */
export function nextReplicas(
  spec: Spec,
  current: number,
  desired: number,
  history: ScalingHistory,
  now: number,
): ScalingDecision {
  forget(history, now);
  const up = { ...defaultUp, ...definedOf(spec.behavior?.scaleUp) };
  const down = { ...defaultDown, ...definedOf(spec.behavior?.scaleDown) };
  const stable = spec.behavior
    ? stabilize(current, desired, history.recommendations, up, down, now)
    : highestOf(desired, history.recommendations, defaultDown.stabilizationWindowSeconds, now);
  history.recommendations.push({ at: now, value: desired });
  const { replicas, reason } = spec.behavior
    ? limit(spec, current, stable, up, down, history.changes, now)
    : limitWithoutBehavior(spec, current, stable);
  return {
    replicas,
    limit: { isLimited: replicas !== stable, reason, message: limitMessages[reason] },
    stabilized: stabilizedNote(stable === desired, !spec.behavior || desired < current),
  };
}

function stabilizedNote(isReady: boolean, isDown: boolean): ScalingDecision["stabilized"] {
  if (isReady)
    return { reason: "ReadyForNewScale", message: "recommended size matches current size" };
  return isDown
    ? {
        reason: "ScaleDownStabilized",
        message:
          "recent recommendations were higher than current one, applying the highest recent recommendation",
      }
    : {
        reason: "ScaleUpStabilized",
        message:
          "recent recommendations were lower than current one, applying the lowest recent recommendation",
      };
}

const limitMessages = {
  DesiredWithinRange: "the desired count is within the acceptable range",
  ScaleUpLimit: "the desired replica count is increasing faster than the maximum scale rate",
  ScaleDownLimit: "the desired replica count is decreasing faster than the maximum scale rate",
  TooManyReplicas: "the desired replica count is more than the maximum replica count",
  TooFewReplicas: "the desired replica count is less than the minimum replica count",
};

interface Limited {
  replicas: number;
  reason: keyof typeof limitMessages;
}

function definedOf(rules: Rules | undefined): Partial<typeof defaultUp> {
  const entries = Object.entries(rules ?? {}).filter(([, value]) => value != null);
  return Object.fromEntries(entries);
}

function forget(history: ScalingHistory, now: number): void {
  const recent = ({ at }: Dated) => now - at <= memoryMs;
  history.recommendations = history.recommendations.filter(recent).slice(-maxRemembered);
  history.changes = history.changes.filter(recent).slice(-maxRemembered);
}

function within(recommendations: readonly Dated[], seconds: number, now: number): number[] {
  return recommendations.filter(({ at }) => now - at < seconds * 1000).map(({ value }) => value);
}

function highestOf(
  desired: number,
  recommendations: readonly Dated[],
  seconds: number,
  now: number,
): number {
  return Math.max(desired, ...within(recommendations, seconds, now));
}

/** Grows only as far as all of its window agreed, shrinks only as far as all of the other agreed. */
function stabilize(
  current: number,
  desired: number,
  recommendations: readonly Dated[],
  up: typeof defaultUp,
  down: typeof defaultDown,
  now: number,
): number {
  const lowest = Math.min(desired, ...within(recommendations, up.stabilizationWindowSeconds, now));
  const highest = highestOf(desired, recommendations, down.stabilizationWindowSeconds, now);
  return Math.min(Math.max(current, lowest), highest);
}

/** Without `behavior` growth is at most to the double, or to four. */
function limitWithoutBehavior(
  { minReplicas, maxReplicas }: Spec,
  current: number,
  wanted: number,
): Limited {
  const pace = Math.max(2 * current, 4);
  const min = minReplicas ?? 1;
  if (wanted < min) return { replicas: min, reason: "TooFewReplicas" };
  const max = Math.min(maxReplicas, pace);
  if (wanted <= max) return { replicas: wanted, reason: "DesiredWithinRange" };
  return { replicas: max, reason: maxReplicas > pace ? "ScaleUpLimit" : "TooManyReplicas" };
}

function limit(
  { minReplicas, maxReplicas }: Spec,
  current: number,
  wanted: number,
  up: typeof defaultUp,
  down: typeof defaultDown,
  changes: readonly Dated[],
  now: number,
): Limited {
  if (wanted > current) {
    const pace = Math.max(rateLimit(current, up, changes, now, 1), current);
    const max = Math.min(maxReplicas, pace);
    if (wanted > max)
      return { replicas: max, reason: maxReplicas > pace ? "ScaleUpLimit" : "TooManyReplicas" };
  } else if (wanted < current) {
    const pace = Math.min(rateLimit(current, down, changes, now, -1), current);
    const least = minReplicas ?? 1;
    const min = Math.max(least, pace);
    if (wanted < min)
      return { replicas: min, reason: least < pace ? "ScaleDownLimit" : "TooFewReplicas" };
  }
  return { replicas: wanted, reason: "DesiredWithinRange" };
}

/** How far the policies allow to go, counted from where each policy's period began. */
function rateLimit(
  current: number,
  rules: typeof defaultUp,
  changes: readonly Dated[],
  now: number,
  direction: 1 | -1,
): number {
  if (rules.selectPolicy === "Disabled") return current;
  const limits = rules.policies.map(({ type, value, periodSeconds }) => {
    const since = changes
      .filter(({ at }) => now - at < periodSeconds * 1000)
      .reduce((sum, change) => sum + change.value, 0);
    const start = current - since;
    if (type === "Pods") return start + direction * value;
    const scaled = start * (1 + (direction * value) / 100);
    return direction > 0 ? Math.ceil(scaled) : Math.trunc(scaled);
  });
  const farthest = direction > 0 ? Math.max(...limits) : Math.min(...limits);
  const nearest = direction > 0 ? Math.min(...limits) : Math.max(...limits);
  return rules.selectPolicy === "Min" ? nearest : farthest;
}
