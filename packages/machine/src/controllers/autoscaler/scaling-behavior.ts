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
  /** Why the metric's wish was not followed to the letter, for the condition `ScalingLimited`. */
  limit?: { reason: string; message: string };
  /** For `AbleToScale`, when a recent recommendation holds the count. */
  stabilized?: { reason: string; message: string };
}

/** From the metric's wish to the next count: stabilisation windows, rate policies, then min and max. */
export function nextReplicas(
  spec: NonNullable<HorizontalPodAutoscaler["spec"]>,
  current: number,
  wish: number,
  history: ScalingHistory,
  now: number,
): ScalingDecision {
  const up = { ...defaultUp, ...definedOf(spec.behavior?.scaleUp) };
  const down = { ...defaultDown, ...definedOf(spec.behavior?.scaleDown) };
  forget(history, now);
  const { replicas, reason } = stabilize(current, wish, history.recommendations, up, down, now);
  history.recommendations.push({ at: now, value: wish });
  const stabilized =
    replicas === wish
      ? undefined
      : {
          reason,
          message: `recent recommendations were ${reason === "ScaleDownStabilized" ? "higher" : "lower"} than current one, applying the ${reason === "ScaleDownStabilized" ? "highest" : "lowest"} recent recommendation`,
        };
  return {
    ...limit(spec, current, replicas, up, down, history.changes, now),
    ...(stabilized ? { stabilized } : {}),
  };
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

function stabilize(
  current: number,
  wish: number,
  recommendations: readonly Dated[],
  up: typeof defaultUp,
  down: typeof defaultDown,
  now: number,
): { replicas: number; reason: string } {
  const within = (seconds: number) =>
    recommendations.filter(({ at }) => now - at < seconds * 1000).map(({ value }) => value);
  const lowest = Math.min(wish, ...within(up.stabilizationWindowSeconds));
  const highest = Math.max(wish, ...within(down.stabilizationWindowSeconds));
  // Grow only as far as all of the window agreed, shrink only as far as all of it agreed.
  if (current < lowest) return { replicas: lowest, reason: "ScaleUpStabilized" };
  if (current > highest) return { replicas: highest, reason: "ScaleDownStabilized" };
  return {
    replicas: current,
    reason: wish > current ? "ScaleUpStabilized" : "ScaleDownStabilized",
  };
}

function limit(
  spec: NonNullable<HorizontalPodAutoscaler["spec"]>,
  current: number,
  wanted: number,
  up: typeof defaultUp,
  down: typeof defaultDown,
  changes: readonly Dated[],
  now: number,
): ScalingDecision {
  const min = spec.minReplicas ?? 1;
  if (wanted > current) {
    const rate = rateLimit(current, up, changes, now, 1);
    const ceiling = Math.min(rate, spec.maxReplicas);
    if (wanted <= ceiling) return bounded(wanted, min, spec.maxReplicas);
    if (rate < spec.maxReplicas)
      return limited(
        Math.max(rate, current),
        "ScaleUpLimit",
        "the desired replica count is increasing faster than the maximum scale rate",
      );
    return limited(
      ceiling,
      "TooManyReplicas",
      "the desired replica count is more than the maximum replica count",
    );
  }
  if (wanted < current) {
    const rate = rateLimit(current, down, changes, now, -1);
    const floor = Math.max(rate, min);
    if (wanted >= floor) return bounded(wanted, min, spec.maxReplicas);
    if (rate > min)
      return limited(
        Math.min(rate, current),
        "ScaleDownLimit",
        "the desired replica count is decreasing faster than the maximum scale rate",
      );
    return limited(
      floor,
      "TooFewReplicas",
      "the desired replica count is less than the minimum replica count",
    );
  }
  return bounded(wanted, min, spec.maxReplicas);
}

function bounded(wanted: number, min: number, max: number): ScalingDecision {
  if (wanted > max)
    return limited(
      max,
      "TooManyReplicas",
      "the desired replica count is more than the maximum replica count",
    );
  if (wanted < min)
    return limited(
      min,
      "TooFewReplicas",
      "the desired replica count is less than the minimum replica count",
    );
  return { replicas: wanted };
}

function limited(replicas: number, reason: string, message: string): ScalingDecision {
  return { replicas, limit: { reason, message } };
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
      .filter(({ at, value }) => now - at < periodSeconds * 1000 && value * direction > 0)
      .reduce((sum, change) => sum + change.value, 0);
    const start = current - since;
    if (type === "Pods") return Math.max(0, start + direction * value);
    const scaled = start * (1 + (direction * value) / 100);
    return Math.max(0, direction > 0 ? Math.ceil(scaled) : Math.trunc(scaled));
  });
  const farthest = direction > 0 ? Math.max(...limits) : Math.min(...limits);
  const nearest = direction > 0 ? Math.min(...limits) : Math.max(...limits);
  return rules.selectPolicy === "Min" ? nearest : farthest;
}
