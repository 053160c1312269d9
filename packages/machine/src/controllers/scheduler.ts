import {
  type Condition,
  Controller,
  getCondition,
  isConditionTrue,
  isConflict,
  isNotFound,
  keyOf,
  type KubeObject,
  type Node,
  type Pod,
  resources,
  setCondition,
} from "@spry/kube";
import { type ControllerContext } from "./context.ts";
import { isPodTerminal } from "./pod-state.ts";

/**
 * Binds Pods to the machine's node. There is one, so nothing is scored; what a Pod asks of a node
 * (name, labels, tolerated taints) is still honoured. CPU and memory are not added up: on one
 * machine a Pod that runs slowly is worth more than one that does not run.
 */
export function createScheduler(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "scheduler",
    workers: 2,
    clock,
    log,
    reconcile: (key) => schedulePod(context, key),
  });
  const enqueue = (pod: Pod) => {
    if (isSchedulable(pod)) controller.enqueue(keyOf(pod));
  };
  caches.pods.onChange(({ type, object }) => type !== "deleted" && enqueue(object));
  caches.nodes.onChange(() => {
    for (const pod of caches.pods.list()) enqueue(pod);
  });
  return controller;
}

function isSchedulable(pod: Pod): boolean {
  const { nodeName, schedulerName, schedulingGates } = pod.spec ?? {};
  if (nodeName || isPodTerminal(pod) || pod.metadata.deletionTimestamp) return false;
  return (schedulerName ?? "default-scheduler") === "default-scheduler" && !schedulingGates?.length;
}

async function schedulePod(context: ControllerContext, key: string): Promise<void> {
  const { caches, client, events } = context;
  const pod = caches.pods.get(key);
  if (!pod || !isSchedulable(pod)) return;
  const nodes = [...caches.nodes.list()];
  const verdicts = nodes.map((node) => ({ node, misfit: misfitOf(node, pod) }));
  const node = verdicts.find(({ misfit }) => misfit === undefined)?.node;
  if (!node) {
    const whys = verdicts.map(({ misfit }) => `1 ${misfit}`).join(", ");
    const message = `0/${nodes.length} nodes are available${whys ? `: ${whys}` : ""}.`;
    return reportUnschedulable(context, pod, message);
  }
  const { namespace, name, uid } = pod.metadata;
  const nodeName = node.metadata.name ?? "";
  const binding = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { ...(namespace ? { namespace } : {}), name: name ?? "", ...(uid ? { uid } : {}) },
    target: { apiVersion: "v1", kind: "Node", name: nodeName },
  };
  try {
    await client.create<KubeObject>(resources.pods, binding, { subresource: "binding" });
  } catch (error) {
    // Bound by an earlier pass that the cache does not show yet, or gone.
    if (isConflict(error) || isNotFound(error)) return;
    throw error;
  }
  const message = `Successfully assigned ${key} to ${nodeName}`;
  events.record(resources.pods, pod, { type: "Normal", reason: "Scheduled", message });
}

/** Why a Pod cannot run on a node, in the words kubectl users know; undefined when it can. */
export function misfitOf(node: Node, pod: Pod): string | undefined {
  const { nodeSelector = {}, tolerations = [] } = pod.spec ?? {};
  if (!isConditionTrue(node.status?.conditions as Condition[], "Ready"))
    return "node(s) were not ready";
  if (node.spec?.unschedulable) return "node(s) were unschedulable";
  const labels = node.metadata.labels ?? {};
  if (Object.entries(nodeSelector).some(([name, value]) => labels[name] !== value))
    return "node(s) didn't match Pod's node affinity/selector";
  const taint = node.spec?.taints?.find(
    (taint) =>
      taint.effect !== "PreferNoSchedule" &&
      !tolerations.some(
        ({ key, operator, value, effect }) =>
          (!key || key === taint.key) &&
          (operator === "Exists" || (value ?? "") === (taint.value ?? "")) &&
          (!effect || effect === taint.effect),
      ),
  );
  if (taint) return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ""}}`;
  return undefined;
}

async function reportUnschedulable(
  { client, clock, events }: ControllerContext,
  pod: Pod,
  message: string,
): Promise<void> {
  const conditions = pod.status?.conditions as Condition[] | undefined;
  const condition: Condition = {
    type: "PodScheduled",
    status: "False",
    reason: "Unschedulable",
    message,
    ...(pod.metadata.generation ? { observedGeneration: pod.metadata.generation } : {}),
  };
  const known = getCondition(conditions, "PodScheduled");
  if (known?.status === "False" && known.message === message) return;
  const { namespace, name = "", uid } = pod.metadata;
  const status = { conditions: setCondition(conditions, condition, clock) };
  await client
    .patch(
      resources.pods,
      { namespace, name },
      { metadata: { uid }, status },
      { subresource: "status" },
    )
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  events.record(resources.pods, pod, { type: "Warning", reason: "FailedScheduling", message });
}
