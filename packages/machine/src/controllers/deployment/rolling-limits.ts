import { type Deployment } from "@spry/kube";
import { scaledValue } from "./int-or-percent.ts";

export interface RollingLimits {
  /** Pods beyond the wanted number that may exist during a rollout. */
  maxSurge: number;
  /** Pods of the wanted number that may be missing during a rollout. */
  maxUnavailable: number;
}

/** As absolute numbers. Both zero would allow no step at all, so one may then be missing. */
export function rollingLimits(deployment: Deployment): RollingLimits {
  const replicas = deployment.spec?.replicas ?? 1;
  const { type, rollingUpdate } = deployment.spec?.strategy ?? {};
  if (type === "Recreate") return { maxSurge: 0, maxUnavailable: 0 };
  const maxSurge = scaledValue(rollingUpdate?.maxSurge ?? "25%", replicas, "up");
  let maxUnavailable = scaledValue(rollingUpdate?.maxUnavailable ?? "25%", replicas, "down");
  if (maxSurge === 0 && maxUnavailable === 0) maxUnavailable = 1;
  return { maxSurge, maxUnavailable: Math.min(maxUnavailable, replicas) };
}
