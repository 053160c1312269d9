import { type Route, type TrafficTarget } from "@spry/function";
import { durationIn, servingKeys } from "../annotations.ts";
import { type Settings } from "../settings/settings.ts";

/** Ours, in the status of a Route: the rollouts that are under way, as JSON. */
export const rolloutAnnotation = "serving.spry.io/rollout";

/** One Revision takes over from another; times are those of the clock, in milliseconds. */
interface Rollout {
  from: string;
  to: string;
  since: number;
}

export interface RolledOut {
  targets: TrafficTarget[];
  /** What is to be kept until the next look; undefined when nothing is under way. */
  state: string | undefined;
  /** When the shares change again. */
  againMs: number | undefined;
}

const leastStepMs = 1_000;
const steps = 100;

/** How long a new Revision takes until it has all requests of the one before; 0: they change at once. */
export function rolloutMsOf(route: Route, { network }: Settings): number {
  return durationIn(route, servingKeys.rolloutDuration) ?? network.rolloutMs;
}

/**
 * The targets while a new latest Revision takes over from the one before, with shares that follow the time
 * (knative.dev/serving/pkg/reconciler/route/traffic, rollout). A Revision that appears meanwhile begins again, from the one that has
 * more requests. `isReady`: whether a Revision can have requests.
 */
export function rollOut(
  route: Route,
  targets: readonly TrafficTarget[],
  options: { durationMs: number; now: number; isReady: (revision: string) => boolean },
): RolledOut {
  const { durationMs, now, isReady } = options;
  const known = rolloutsOf(route);
  const left: Rollout[] = [];
  const shared = targets.flatMap((target) => {
    const { revisionName: to = "", percent = 0 } = target;
    if (!target.latestRevision || percent < 2 || durationMs <= 0) return [target];
    const rollout = known.find((each) => each.to === to) ?? begun(route, target, known, options);
    if (!rollout || rollout.from === to || !isReady(rollout.from)) return [target];
    const part = (now - rollout.since) / durationMs;
    if (part >= 1) return [target];
    left.push(rollout);
    const own = Math.min(percent - 1, Math.max(1, Math.floor(percent * part)));
    const { tag: _, url: _url, ...plain } = target;
    const rest = { ...plain, revisionName: rollout.from, latestRevision: false };
    return [
      { ...target, percent: own },
      { ...rest, percent: percent - own },
    ];
  });
  if (left.length === 0) return { targets: shared, state: undefined, againMs: undefined };
  const againMs = Math.max(leastStepMs, durationMs / steps);
  return { targets: shared, state: JSON.stringify(left), againMs };
}

/** From the Revision that has the requests now; undefined when there is none. */
function begun(
  route: Route,
  { tag, revisionName: to = "" }: TrafficTarget,
  known: readonly Rollout[],
  { now, durationMs }: { now: number; durationMs: number },
): Rollout | undefined {
  const before = route.status?.traffic?.find((each) => each.latestRevision && each.tag === tag);
  const last = before?.revisionName;
  if (!last) return undefined;
  const interrupted = known.find((each) => each.to === last);
  const isHalfway = interrupted !== undefined && (now - interrupted.since) * 2 < durationMs;
  return { from: isHalfway ? interrupted.from : last, to, since: now };
}

function rolloutsOf({ status }: Route): Rollout[] {
  try {
    const list = JSON.parse(status?.annotations?.[rolloutAnnotation] ?? "[]") as Rollout[];
    return list.filter(({ from, to, since }) => from && to && Number.isFinite(since));
  } catch {
    return [];
  }
}
