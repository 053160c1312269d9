import {
  isServedOnDemand,
  knativeLabels,
  type KService,
  labels,
  podSelectorOf,
  type Reason,
  servedPodSelectorOf,
} from "@spry/function";
import {
  type Deployment,
  formatLabelSelector,
  isControlledBy,
  type Pod,
  requirementsOf,
  timestamp,
} from "@spry/kube";
import { conditionOf, observe } from "./conditions.ts";
import { podProblem, type PodProblem, readyPods } from "./pod-problem.ts";
import { judgeServing } from "./serving/kservice-state.ts";
import { type Deps, type Draft } from "./stage.ts";

/** What the scale subresource needs to know. */
export function observeScale(draft: Draft, deps: Deps): void {
  const { fn, status } = draft;
  const onDemand = isServedOnDemand(fn.spec);
  const before = status.replicas;
  status.replicas = onDemand
    ? servedPods(draft, deps).length
    : (deploymentOf(draft, deps)?.status?.replicas ?? 0);
  // Its first Pods, and those of a change, are not what a request waited for.
  const wasServing = conditionOf(status, "Running")?.reason === "DeploymentReady";
  if (onDemand && wasServing && before === 0 && status.replicas > 0) {
    status.lastColdStart = timestamp(deps.clock);
  }
  const matchLabels = onDemand ? servedPodSelectorOf(fn) : podSelectorOf(fn);
  status.podSelector = formatLabelSelector(requirementsOf({ matchLabels }));
}

/**
 * Reports the Deployment's state: the desired one's if the pass got so far (`complete`), otherwise that of the
 * existing one, because an edit is being built or cannot be built.
 */
export function observeRollout(draft: Draft, complete: boolean, deps: Deps): void {
  const { fn, status } = draft;
  const deployment = deploymentOf(draft, deps);
  const kservice = kserviceOf(draft, deps);
  // Until the desired way of serving has begun, the other one is what there is to report.
  if (kservice && (isServedOnDemand(fn.spec) || !deployment)) {
    return observeServing(draft, kservice, complete, deps);
  }
  if (!deployment) return;
  const pods = deps.caches.pods
    .byIndex("function", draft.key)
    .filter((pod) => pod.metadata.labels?.[labels.resource] === "deployment");
  const template = deployment.spec?.template ?? {};
  const found = judge(deployment, podProblem(pods, template), readyPods(pods, template));
  const { reason, message } = complete ? found : duringBuild(found, draft);
  const before = conditionOf(status, "Running")?.observedGeneration;
  const generation = complete ? fn.metadata.generation : before;
  observe(status, "Running", { reason, message, generation }, deps.clock);
}

function observeServing(draft: Draft, kservice: KService, complete: boolean, deps: Deps): void {
  const { fn, status } = draft;
  const { revision } = knativeLabels;
  const latest = kservice.status?.latestCreatedRevisionName ?? "";
  const pods = servedPods(draft, deps).filter(
    ({ metadata }) => metadata.labels?.[revision] === latest,
  );
  const found = judgeServing(kservice, podProblem(pods, kservice.spec.template));
  const { reason, message } = complete ? found : duringBuild(found, draft);
  const before = conditionOf(status, "Running")?.observedGeneration;
  observe(
    status,
    "Running",
    { reason, message, generation: complete ? fn.metadata.generation : before },
    deps.clock,
  );
}

/** The Pods that a Knative Service runs for the Function. */
function servedPods({ key }: Draft, { caches }: Deps): Pod[] {
  return caches.pods
    .byIndex("function", key)
    .filter(
      ({ metadata }) => metadata.labels?.[knativeLabels.revision] && !metadata.deletionTimestamp,
    );
}

function kserviceOf({ kservice, fn, key }: Draft, { caches }: Deps): KService | undefined {
  const cached = caches.kservices.get(key);
  return kservice ?? (cached && isControlledBy(cached, fn) ? cached : undefined);
}

function deploymentOf({ deployment, fn, key }: Draft, { caches }: Deps): Deployment | undefined {
  const cached = caches.deployments.get(key);
  return deployment ?? (cached && isControlledBy(cached, fn) ? cached : undefined);
}

export interface Finding {
  reason: Reason;
  message: string;
}

/** A Deployment's conditions as the contract reads them (docs/compatibility.md#conditions), with what its Pods report. */
function judge(deployment: Deployment, problem: PodProblem | undefined, ready: number): Finding {
  const { name = "", generation = 0 } = deployment.metadata;
  const condition = (type: string) =>
    deployment.status?.conditions?.find((each) => each.type === type);
  const available = condition("Available");
  const progressing = condition("Progressing");
  const seen = (deployment.status?.observedGeneration ?? 0) >= generation;
  const rolledOut = seen && progressing?.reason === "NewReplicaSetAvailable";

  if (rolledOut && available?.status === "True" && progressing?.status === "True") {
    return { reason: "DeploymentReady", message: `Deployment ${name} is ready` };
  }
  const failure = condition("ReplicaFailure");
  const obstacle =
    problem?.message ??
    (failure?.status === "True" ? `its Pods cannot be created: ${failure.message}` : undefined);
  const why = obstacle ? `: ${obstacle}` : "";
  // A roll-out that was given up leaves this until the next one is complete: also while it returns to Pods that are ready.
  const isReturning = ready > 0 && ready >= (deployment.spec?.replicas ?? 1);
  if (seen && progressing?.status === "False" && !isReturning) {
    const message = `Deployment ${name} failed${why || `: ${progressing.message}`}`;
    return { reason: "DeploymentFailed", message };
  }
  // Code that crashes has failed, also while old Pods serve: the user does not have to wait for the progress deadline.
  // Of other problems, such as an image that cannot be pulled, old Pods leave time for.
  if (problem?.fatal && (available?.status !== "True" || (!rolledOut && problem.isCrash))) {
    return { reason: "DeploymentFailed", message: `Deployment ${name} failed${why}` };
  }
  // As long as all goes well, a roll-out has one reason from its start to its end.
  if (!rolledOut && !obstacle) {
    return generation === 1
      ? { reason: "DeploymentCreated", message: `Deployment ${name} created` }
      : { reason: "DeploymentUpdated", message: `Deployment ${name} updated` };
  }
  if (available?.status === "False") {
    const message = `Deployment ${name} has fewer Pods ready than it needs${why}`;
    return { reason: "MinReplicasNotAvailable", message };
  }
  return { reason: "DeploymentWaiting", message: `Deployment ${name} is not ready yet${why}` };
}

/** Problems of the old code say nothing about the new code while that is being built. */
function duringBuild(found: Finding, draft: Draft): Finding {
  const building = conditionOf(draft.status, "BuildReady")?.status === "Unknown";
  if (!building || found.reason !== "DeploymentFailed") return found;
  return {
    reason: "DeploymentWaiting",
    message: `waiting for the build; meanwhile: ${found.message}`,
  };
}
