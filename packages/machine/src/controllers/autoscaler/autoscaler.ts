import {
  type Condition,
  Controller,
  deepEqual,
  getCondition,
  type HorizontalPodAutoscaler,
  isNotFound,
  keyOf,
  type KubeObject,
  matchesLabels,
  messageOf,
  parseLabelSelector,
  type Pod,
  quantityValue,
  type Resource,
  resources,
  setCondition,
  timestamp,
} from "@spry/kube";
import { discoverKind, findKind } from "../api-resources.ts";
import { byNamespace, type ControllerContext } from "../context.ts";
import { isPodActive, isPodReady } from "../pod-state.ts";
import { readCpuUsage } from "./pod-metrics.ts";
import {
  type Calculation,
  type PodUsage,
  replicasForUtilization,
  tolerancesOf,
} from "./replica-calculation.ts";
import { nextReplicas, type ScalingHistory } from "./scaling-behavior.ts";

/** kube-controller-manager's `--horizontal-pod-autoscaler-sync-period`. */
const syncMs = 15_000;
/** A Pod this young burns CPU to start up, which says nothing about its load. */
const initializationMs = 30_000;

interface Scale extends KubeObject {
  spec?: { replicas?: number };
  status?: { replicas?: number; selector?: string };
}
type Autoscaler = HorizontalPodAutoscaler;
type Status = NonNullable<Autoscaler["status"]>;

/** Follows the CPU that Pods really use with the number of Pods. */
export function createAutoscaler(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const histories = new Map<string, ScalingHistory>();
  const controller = new Controller({
    name: "horizontal-pod-autoscaler",
    workers: 2,
    clock,
    log,
    async reconcile(key, signal) {
      const autoscaler = caches.autoscalers.get(key);
      if (!autoscaler || autoscaler.metadata.deletionTimestamp) return void histories.delete(key);
      const history = histories.get(key) ?? { recommendations: [], changes: [] };
      histories.set(key, history);
      await reconcileAutoscaler(context, autoscaler, history, signal);
      return { requeueAfterMs: syncMs };
    },
  });
  caches.autoscalers.onChange((change) => {
    const { type, object } = change;
    // Its own status is no news.
    const isNews =
      type !== "updated" || change.previous.metadata.generation !== object.metadata.generation;
    if (isNews || object.metadata.generation === undefined) controller.enqueue(keyOf(object));
  });
  return controller;
}

/** A failure that the person reads in the conditions, and that the next period may see mended. */
class ScalingProblem extends Error {
  readonly type: "AbleToScale" | "ScalingActive";
  readonly reason: string;

  constructor(type: "AbleToScale" | "ScalingActive", reason: string, message: string) {
    super(message);
    this.type = type;
    this.reason = reason;
  }
}

async function reconcileAutoscaler(
  context: ControllerContext,
  autoscaler: Autoscaler,
  history: ScalingHistory,
  signal: AbortSignal,
): Promise<void> {
  const { clock, events } = context;
  let conditions = (autoscaler.status?.conditions ?? []) as Condition[];
  const put = (type: string, status: Condition["status"], reason: string, message: string) => {
    conditions = setCondition(conditions, { type, status, reason, message }, clock);
  };
  let result:
    | { current: number; desired: number; calculation?: Calculation; changed: boolean }
    | undefined;
  try {
    const { resource, scale } = await readScale(context, autoscaler, signal);
    put(
      "AbleToScale",
      "True",
      "SucceededGetScale",
      "the HPA controller was able to get the target's current scale",
    );
    result = await scaleTarget(context, autoscaler, history, resource, scale, put, signal);
  } catch (error) {
    if (!(error instanceof ScalingProblem)) throw error;
    put(error.type, "False", error.reason, error.message);
    if (
      !deepEqual(
        getCondition(conditions, error.type),
        getCondition(autoscaler.status?.conditions as Condition[], error.type),
      )
    )
      events.record(resources.horizontalPodAutoscalers, autoscaler, {
        type: "Warning",
        reason: error.reason,
        message: error.message,
      });
  }
  await writeStatus(context, autoscaler, statusOf(autoscaler, conditions, result, clock));
}

async function readScale(
  { client }: ControllerContext,
  autoscaler: Autoscaler,
  signal: AbortSignal,
): Promise<{ resource: Resource<Scale>; scale: Scale }> {
  const { namespace } = autoscaler.metadata;
  const { apiVersion = "", kind = "", name = "" } = autoscaler.spec?.scaleTargetRef ?? {};
  try {
    const builtIn = findKind(Object.values(resources) as Resource[], apiVersion, kind);
    const resource = builtIn ?? (await discoverKind(client, apiVersion, kind, signal));
    if (!resource) throw new Error(`no kind ${kind} in ${apiVersion}`);
    const typed = resource as Resource<Scale>;
    return {
      resource: typed,
      scale: await client.get(typed, { namespace, name, subresource: "scale" }),
    };
  } catch (error) {
    const message = `the HPA controller was unable to get the target's current scale: ${messageOf(error)}`;
    throw new ScalingProblem("AbleToScale", "FailedGetScale", message);
  }
}

async function scaleTarget(
  context: ControllerContext,
  autoscaler: Autoscaler,
  history: ScalingHistory,
  resource: Resource<Scale>,
  scale: Scale,
  put: (type: string, status: Condition["status"], reason: string, message: string) => void,
  signal: AbortSignal,
): Promise<{ current: number; desired: number; calculation?: Calculation; changed: boolean }> {
  const { clock, client, events } = context;
  const spec = autoscaler.spec;
  const current = scale.spec?.replicas ?? 0;
  if (!spec) return { current, desired: current, changed: false };
  if (current === 0) {
    put(
      "ScalingActive",
      "False",
      "ScalingDisabled",
      "scaling is disabled since the replica count of the target is zero",
    );
    return { current, desired: 0, changed: false };
  }
  const outside = outsideBounds(current, spec.minReplicas ?? 1, spec.maxReplicas);
  let desired = outside ?? current;
  let calculation: Calculation | undefined;
  if (outside === undefined) {
    calculation = await measure(context, autoscaler, scale, current, signal);
    put(
      "ScalingActive",
      "True",
      "ValidMetricFound",
      "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)",
    );
    const decision = nextReplicas(spec, current, calculation.replicas, history, clock.now());
    desired = decision.replicas;
    const stable = decision.stabilized ?? {
      reason: "ReadyForNewScale",
      message: "recommended size matches current size",
    };
    put("AbleToScale", "True", stable.reason, stable.message);
    if (decision.limit)
      put("ScalingLimited", "True", decision.limit.reason, decision.limit.message);
    else
      put(
        "ScalingLimited",
        "False",
        "DesiredWithinRange",
        "the desired count is within the acceptable range",
      );
  }
  if (desired === current)
    return { current, desired, ...(calculation ? { calculation } : {}), changed: false };
  const { namespace } = autoscaler.metadata;
  const name = spec.scaleTargetRef.name;
  try {
    await client.patch(
      resource,
      { namespace, name },
      { spec: { replicas: desired } },
      { subresource: "scale", signal },
    );
  } catch (error) {
    const message = `the HPA controller was unable to update the target scale: ${messageOf(error)}`;
    throw new ScalingProblem("AbleToScale", "FailedUpdateScale", message);
  }
  history.changes.push({ at: clock.now(), value: desired - current });
  put(
    "AbleToScale",
    "True",
    "SucceededRescale",
    `the HPA controller was able to update the target scale to ${desired}`,
  );
  const why =
    outside !== undefined
      ? "Current number of replicas outside of spec.minReplicas and spec.maxReplicas"
      : desired > current
        ? "cpu resource utilization (percentage of request) above target"
        : "All metrics below target";
  const message = `New size: ${desired}; reason: ${why}`;
  events.record(resources.horizontalPodAutoscalers, autoscaler, {
    type: "Normal",
    reason: "SuccessfulRescale",
    message,
  });
  return { current, desired, ...(calculation ? { calculation } : {}), changed: true };
}

function outsideBounds(current: number, min: number, max: number): number | undefined {
  if (current < min) return min;
  return current > max ? max : undefined;
}

/** What the metrics ask for; of several metrics the one that asks for most. */
async function measure(
  context: ControllerContext,
  autoscaler: Autoscaler,
  scale: Scale,
  current: number,
  signal: AbortSignal,
): Promise<Calculation> {
  const fail = (reason: string, message: string) =>
    new ScalingProblem("ScalingActive", reason, message);
  const selector = scale.status?.selector;
  if (!selector) throw fail("InvalidSelector", "the HPA target's scale is missing a selector");
  const targets = (autoscaler.spec?.metrics ?? []).map((metric) => {
    const target =
      metric.type === "Resource" && metric.resource?.name === "cpu"
        ? metric.resource.target
        : undefined;
    if (target?.type === "Utilization" && target.averageUtilization)
      return target.averageUtilization;
    throw fail(
      "InvalidMetricSourceType",
      `metric of type ${metric.type} is not supported: use type Resource, name cpu, target.type Utilization`,
    );
  });
  if (targets.length === 0) targets.push(80);
  const pods = selectPods(context, autoscaler.metadata.namespace ?? "", selector);
  const nodes = [...new Set(pods.flatMap((pod) => pod.spec?.nodeName ?? []))];
  const usage = await readCpuUsage(nodes, context.kubelet, signal);
  const measured = pods.map((pod) => podUsage(pod, usage, context.clock.now()));
  const bare = measured.find(({ request }) => request === 0);
  if (bare)
    throw fail(
      "FailedGetResourceMetric",
      `the HPA was unable to compute the replica count: missing request for cpu in a container of Pod ${bare.name}`,
    );
  const results = targets.map((target) =>
    replicasForUtilization(current, target, measured, tolerancesOf(autoscaler.spec?.behavior)),
  );
  const best = results.reduce(
    (a, b) => ((b?.replicas ?? -1) > (a?.replicas ?? -1) ? b : a),
    undefined,
  );
  if (!best)
    throw fail(
      "FailedGetResourceMetric",
      "the HPA was unable to compute the replica count: no metrics from ready Pods yet",
    );
  return best;
}

function selectPods({ caches }: ControllerContext, namespace: string, selector: string): Pod[] {
  const requirements = parseLabelSelector(selector);
  return caches.pods
    .byIndex(byNamespace, namespace)
    .filter((pod) => isPodActive(pod) && matchesLabels(requirements, pod.metadata.labels));
}

function podUsage(pod: Pod, usage: ReadonlyMap<string, number>, now: number): PodUsage {
  const containers = pod.spec?.containers ?? [];
  const requests = containers.map(({ resources }) =>
    quantityValue(resources?.requests?.["cpu"] ?? "0"),
  );
  const started = Date.parse((pod.status?.startTime as unknown as string) ?? "");
  const young = Number.isNaN(started) || now - started < initializationMs;
  return {
    name: pod.metadata.name ?? "",
    request: requests.includes(0) ? 0 : requests.reduce((sum, cores) => sum + cores, 0),
    usage: usage.get(pod.metadata.uid ?? ""),
    unready: pod.status?.phase === "Pending" || !isPodReady(pod) || young,
  };
}

function statusOf(
  autoscaler: Autoscaler,
  conditions: Condition[],
  result:
    | { current: number; desired: number; calculation?: Calculation; changed: boolean }
    | undefined,
  clock: ControllerContext["clock"],
): Status {
  const before = autoscaler.status;
  const lastScaleTime = result?.changed ? timestamp(clock) : before?.lastScaleTime;
  const { calculation } = result ?? {};
  const current = calculation && {
    averageUtilization: calculation.utilization,
    averageValue: `${Math.round(calculation.averageUsage * 1000)}m`,
  };
  return {
    observedGeneration: autoscaler.metadata.generation ?? 0,
    ...(lastScaleTime ? { lastScaleTime: lastScaleTime } : {}),
    currentReplicas: result?.current ?? before?.currentReplicas ?? 0,
    desiredReplicas: result?.desired ?? before?.desiredReplicas ?? 0,
    ...(current
      ? { currentMetrics: [{ type: "Resource", resource: { name: "cpu", current } }] }
      : {}),
    conditions: conditions,
  };
}

async function writeStatus(
  { client }: ControllerContext,
  autoscaler: Autoscaler,
  status: Status,
): Promise<void> {
  if (deepEqual(autoscaler.status, status)) return;
  await client
    .update(
      resources.horizontalPodAutoscalers,
      { ...autoscaler, status },
      { subresource: "status" },
    )
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
}
