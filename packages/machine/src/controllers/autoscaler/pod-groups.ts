import { type Clock, getCondition, type Pod } from "@spry/kube";
import { milliOf, type Sample } from "./pod-metrics.ts";

/** kube-controller-manager's `--horizontal-pod-autoscaler-cpu-initialization-period`. */
const initializationMs = 300_000;
/** Its `--horizontal-pod-autoscaler-initial-readiness-delay`. */
const readinessDelayMs = 30_000;

export interface PodGroups {
  /** Pods whose samples count. */
  measured: Map<string, number>;
  /** Pods that cannot be measured yet: not running, or too young for their use to mean anything. */
  unready: string[];
  /** Pods that run and have no sample. */
  missing: string[];
}

/** Which Pods' samples count (`pkg/controller/podautoscaler/replica_calculator.go: groupPods`). */
export function groupPods(
  pods: readonly Pod[],
  samples: ReadonlyMap<string, Sample>,
  resource: string,
  clock: Clock,
): PodGroups {
  const groups: PodGroups = { measured: new Map(), unready: [], missing: [] };
  for (const pod of pods) {
    const { name = "", deletionTimestamp } = pod.metadata;
    const phase = pod.status?.phase;
    if (deletionTimestamp || phase === "Failed") continue;
    const sample = samples.get(name);
    if (phase === "Pending") groups.unready.push(name);
    else if (!sample) groups.missing.push(name);
    else if (resource === "cpu" && isStarting(pod, sample, clock)) groups.unready.push(name);
    else groups.measured.set(name, sample.value);
  }
  return groups;
}

/** A Pod that starts burns CPU, which says nothing about its load. */
function isStarting({ status }: Pod, sample: Sample, clock: Clock): boolean {
  const ready = getCondition(status?.conditions as never, "Ready") as
    | { status: string; lastTransitionTime?: string }
    | undefined;
  const started = Date.parse(status?.startTime ?? "");
  if (!ready || Number.isNaN(started)) return true;
  const since = Date.parse(ready.lastTransitionTime ?? "") || 0;
  const isUnready = ready.status === "False";
  if (started + initializationMs > clock.now())
    return isUnready || sample.at < since + sample.windowMs;
  // Only of Pods that have never been ready: one that is so busy that it fails its probe counts.
  return isUnready && started + readinessDelayMs > since;
}

/** What each Pod requests of a resource, in thousandths; of one container, when it is named. Throws when one requests none. */
export function requestsOf(
  pods: readonly Pod[],
  resource: string,
  container?: string,
): Map<string, number> {
  const requests = new Map<string, number>();
  for (const { metadata, spec } of pods) {
    const sidecars = (spec?.initContainers ?? []).filter((each) => each.restartPolicy === "Always");
    const all = [...(spec?.containers ?? []), ...sidecars];
    const ofPod = (spec as { resources?: { requests?: Record<string, string> } }).resources;
    if (!container && Object.keys(ofPod?.requests ?? {}).length > 0) {
      const request = milliOf(ofPod?.requests?.[resource]);
      if (request === undefined)
        throw new Error(`missing pod-level request for ${resource} in Pod ${metadata.name}`);
      requests.set(metadata.name ?? "", request);
      continue;
    }
    let sum = 0;
    for (const { name, resources } of all) {
      if (container && name !== container) continue;
      const request = milliOf(resources?.requests?.[resource]);
      if (request === undefined)
        throw new Error(
          `missing request for ${resource} in container ${name} of Pod ${metadata.name}`,
        );
      sum += request;
    }
    requests.set(metadata.name ?? "", sum);
  }
  return requests;
}
