import {
  type Clock,
  type Condition,
  type Container,
  type ContainerStatus,
  getCondition,
  type Pod,
  setCondition,
} from "@spry/kube";

/**
 * What the API says of a Pod, derived from the state of its containers exactly as kubelet derives it
 * (`pkg/kubelet/kubelet_pods.go: getPhase`, `pkg/kubelet/status/generate.go`). Pure.
 */
export interface PodFacts {
  /** In the order of the spec. */
  initContainers: readonly ContainerStatus[];
  containers: readonly ContainerStatus[];
  podIp?: string | undefined;
  hostIp: string;
  startTime: string;
  /** The Pod as a whole has been given up or ended, whatever its containers say. */
  ended?: { reason: string; message: string } | undefined;
  /** No container will run again, whatever the restart policy: the Pod is being deleted. */
  isTerminal?: boolean;
}

type PodStatus = NonNullable<Pod["status"]>;
type Phase = "Pending" | "Running" | "Succeeded" | "Failed";

export function isSidecar(container: Container): boolean {
  return container.restartPolicy === "Always";
}

/** How the containers of a Pod stand, taken together. It has ended when none of them runs any more. */
export function phaseOf(pod: Pod, facts: PodFacts): Phase {
  const phase = decidedPhase(pod, facts);
  if (phase !== "Succeeded" && phase !== "Failed") return phase;
  const all = [...facts.initContainers, ...facts.containers];
  return all.some(({ state }) => state?.running) ? "Running" : phase;
}

function decidedPhase(pod: Pod, facts: PodFacts): Phase {
  if (facts.ended) return "Failed";
  const { restartPolicy = "Always", initContainers = [] } = pod.spec ?? {};
  const initialized = initContainers.every((container, i) =>
    isDone(container, facts.initContainers[i]),
  );
  let [running, waiting, stopped, succeeded] = [0, 0, 0, 0];
  for (const { state, lastState } of facts.containers) {
    const end = state?.terminated ?? (state?.waiting ? lastState?.terminated : undefined);
    if (state?.running) running++;
    else if (end) {
      stopped++;
      if (end.exitCode === 0) succeeded++;
    } else waiting++;
  }
  if (facts.isTerminal)
    return stopped > 0 && succeeded === facts.containers.length ? "Succeeded" : "Failed";
  if (!initialized && running + stopped === 0) {
    const failed = initContainers.some((container, i) => {
      const end = facts.initContainers[i]?.state?.terminated;
      return (
        end !== undefined &&
        end.exitCode !== 0 &&
        restartPolicy === "Never" &&
        !isSidecar(container)
      );
    });
    return failed ? "Failed" : "Pending";
  }
  if (waiting > 0) return running > 0 ? "Running" : "Pending";
  if (running > 0 || restartPolicy === "Always")
    return stopped + running > 0 ? "Running" : "Pending";
  if (stopped === succeeded) return "Succeeded";
  return restartPolicy === "Never" ? "Failed" : "Running";
}

/** An ordinary init container is done when it has succeeded, a sidecar when it has started. */
export function isDone(container: Container, status: ContainerStatus | undefined): boolean {
  if (isSidecar(container)) return status?.started === true;
  return status?.state?.terminated?.exitCode === 0;
}

export function podStatus(pod: Pod, facts: PodFacts, clock: Clock): PodStatus {
  const phase = phaseOf(pod, facts);
  const conditions = conditionsOf(pod, facts, phase, clock);
  const hostIps = { hostIP: facts.hostIp, hostIPs: [{ ip: facts.hostIp }] };
  const podIps = facts.podIp ? { podIP: facts.podIp, podIPs: [{ ip: facts.podIp }] } : {};
  return {
    ...(pod.metadata.generation ? { observedGeneration: pod.metadata.generation } : {}),
    phase,
    conditions: conditions,
    ...(facts.ended && phase === "Failed" ? facts.ended : {}),
    ...hostIps,
    ...podIps,
    startTime: facts.startTime,
    ...(facts.initContainers.length > 0
      ? { initContainerStatuses: [...facts.initContainers] }
      : {}),
    containerStatuses: [...facts.containers],
    qosClass: pod.status?.qosClass ?? qosClassOf(pod),
  };
}

/** Conditions that the node agent sets; other components set all others. */
const ownConditions = new Set([
  "PodReadyToStartContainers",
  "Initialized",
  "ContainersReady",
  "Ready",
  "PodScheduled",
]);

/** Our own conditions as we last said them, and others' as they are in the latest version of the Pod. */
export function mergeConditions(own: PodStatus["conditions"], latest: PodStatus["conditions"]) {
  return [
    ...(own ?? []).filter(({ type }) => ownConditions.has(type)),
    ...(latest ?? []).filter(({ type }) => !ownConditions.has(type)),
  ];
}

function conditionsOf(pod: Pod, facts: PodFacts, phase: Phase, clock: Clock): Condition[] {
  let conditions = (pod.status?.conditions ?? []) as Condition[];
  const put = (type: string, verdict: Verdict) => {
    const { isTrue, ...why } = verdict;
    const status = isTrue ? "True" : "False";
    // The status is written as a whole: what a verdict does not say is to go away.
    conditions = setCondition(conditions, { type, status, ...why }, clock);
  };
  const running = phase === "Pending" || phase === "Running";
  put("PodReadyToStartContainers", { isTrue: facts.podIp !== undefined && running });
  put("Initialized", initializedVerdict(pod, facts, phase));
  const containersReady = containersReadyVerdict(pod, facts, phase);
  put("ContainersReady", containersReady);
  put("Ready", readyVerdict(pod, containersReady));
  put("PodScheduled", { isTrue: true });
  if (facts.ended?.reason === "Evicted") {
    const { message } = facts.ended;
    put("DisruptionTarget", { isTrue: true, reason: "TerminationByKubelet", message });
  }
  return conditions;
}

interface Verdict {
  isTrue: boolean;
  reason?: string;
  message?: string;
}

function initializedVerdict(pod: Pod, facts: PodFacts, phase: Phase): Verdict {
  const { initContainers = [] } = pod.spec ?? {};
  if (initContainers.length === 0) return { isTrue: true };
  if (phase === "Succeeded") return { isTrue: true, reason: "PodCompleted" };
  const unfinished = initContainers.filter((each, i) => !isDone(each, facts.initContainers[i]));
  if (unfinished.length === 0) return { isTrue: true };
  const message = `containers with incomplete status: ${namesOf(unfinished)}`;
  return { isTrue: false, reason: "ContainersNotInitialized", message };
}

function containersReadyVerdict(pod: Pod, facts: PodFacts, phase: Phase): Verdict {
  if (phase === "Succeeded") return { isTrue: false, reason: "PodCompleted" };
  if (phase === "Failed") return { isTrue: false, reason: "PodFailed" };
  const sidecars = (pod.spec?.initContainers ?? []).filter(isSidecar);
  const statuses = [...facts.initContainers, ...facts.containers];
  const unready = [...sidecars, ...(pod.spec?.containers ?? [])].filter(
    ({ name }) => statuses.find((status) => status.name === name)?.ready !== true,
  );
  if (unready.length === 0) return { isTrue: true };
  const message = `containers with unready status: ${namesOf(unready)}`;
  return { isTrue: false, reason: "ContainersNotReady", message };
}

function readyVerdict(pod: Pod, containersReady: Verdict): Verdict {
  if (!containersReady.isTrue) return containersReady;
  const missing = (pod.spec?.readinessGates ?? []).filter(
    ({ conditionType }) =>
      getCondition(pod.status?.conditions as Condition[] | undefined, conditionType)?.status !==
      "True",
  );
  if (missing.length === 0) return { isTrue: true };
  const list = missing.map(({ conditionType }) => conditionType).join(", ");
  const message = `corresponding condition of pod readiness gate "${list}" does not exist.`;
  return { isTrue: false, reason: "ReadinessGatesNotReady", message };
}

function namesOf(containers: readonly Container[]): string {
  return `[${containers.map(({ name }) => name).join(" ")}]`;
}

/** `BestEffort` without any request or limit, `Guaranteed` when all are limited, else `Burstable`. */
export function qosClassOf(pod: Pod): "BestEffort" | "Burstable" | "Guaranteed" {
  const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  const declared = all.map(({ resources }) => ({ ...resources?.requests, ...resources?.limits }));
  if (declared.every((list) => !list["cpu"] && !list["memory"])) return "BestEffort";
  const guaranteed = all.every(({ resources }) =>
    ["cpu", "memory"].every((name) => {
      const limit = resources?.limits?.[name];
      return limit !== undefined && (resources?.requests?.[name] ?? limit) === limit;
    }),
  );
  return guaranteed ? "Guaranteed" : "Burstable";
}
