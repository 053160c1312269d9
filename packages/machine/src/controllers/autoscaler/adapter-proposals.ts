import { formatQuantity, isConditionTrue, type LabelSelector, messageOf } from "@spry/kube";
import {
  type MetricIdentifier,
  readExternalMetric,
  readObjectMetric,
  readPodMetrics,
} from "./adapter-metrics.ts";
import { groupPods } from "./pod-groups.ts";
import { milliOf } from "./pod-metrics.ts";
import {
  type MetricContext,
  MetricProblem,
  type MetricSpec,
  type MetricStatus,
  type Proposal,
  selectedPods,
} from "./proposal.ts";
import {
  replicasFor,
  replicasForAverage,
  replicasForValue,
  tolerancesOf,
} from "./replica-calculation.ts";

/** What metrics of adapters ask for (`pkg/controller/podautoscaler/horizontal.go`, `computeStatusFor…Metric`). */

/** An average over the target's Pods. */
export async function podsProposal(of: MetricContext, { pods }: MetricSpec): Promise<Proposal> {
  const metric = identifierOf(pods?.metric);
  const { name } = metric;
  try {
    const samples = await within(name, () => readPodMetrics(placeOf(of), of.selector, metric));
    const all = selectedPods(of);
    if (all.length === 0)
      throw new Error("no pods returned by selector while calculating replica count");
    const groups = groupPods(all, samples, "", of.context.clock);
    const target = { averageMilli: milliOf(pods?.target.averageValue) ?? 0 };
    const { replicas, averageMilli } = replicasFor(of.current, target, groups, tolerances(of));
    const current = { averageValue: quantityOf(averageMilli) };
    const status = { type: "Pods", pods: { metric, current } } as MetricStatus;
    return { replicas, metric: `pods metric ${name}`, status };
  } catch (error) {
    throw problem("FailedGetPodsMetric", messageOf(error), "failed to get pods metric value");
  }
}

/** Of one object, such as an Ingress. */
export async function objectProposal(of: MetricContext, { object }: MetricSpec): Promise<Proposal> {
  const metric = identifierOf(object?.metric);
  const { name } = metric;
  const { describedObject = { kind: "", name: "" }, target } = object ?? {};
  const { kind } = describedObject;
  const about = { metric, describedObject };
  const fail = (why: string, what = "") =>
    problem("FailedGetObjectMetric", why, `failed to get object metric value${what}`);
  let value: number;
  try {
    value = await readObjectMetric(placeOf(of), describedObject, metric);
  } catch (error) {
    // In Kubernetes' order of words.
    const what = `${kind} on ${of.autoscaler.metadata.namespace} ${describedObject.name}`;
    const why = `unable to get metric ${name}: ${what}/${messageOf(error)}`;
    throw fail(why, target?.averageValue ? `: failed to get ${name} object metric` : "");
  }
  try {
    if (target?.type === "Value" && target.value !== undefined) {
      const replicas = replicasFromValue(of, value, target.value);
      const status = {
        type: "Object",
        object: { ...about, current: { value: quantityOf(value) } },
      };
      return { replicas, metric: `${kind} metric ${name}`, status: status };
    }
    if (target?.type === "AverageValue" && target.averageValue !== undefined) {
      const { replicas, current } = replicasFromAverage(of, value, target.averageValue);
      const status = { type: "Object", object: { ...about, current } } as MetricStatus;
      return { replicas, metric: toldOf(metric), status };
    }
  } catch (error) {
    throw fail(messageOf(error));
  }
  throw fail(
    "invalid object metric source: neither a value target nor an average value target was set",
  );
}

/** Of the world outside, such as the length of a queue. */
export async function externalProposal(
  of: MetricContext,
  { external }: MetricSpec,
): Promise<Proposal> {
  const metric = identifierOf(external?.metric);
  const { name } = metric;
  const { target } = external ?? {};
  const isAverage = target?.averageValue !== undefined;
  try {
    if (!isAverage && target?.value === undefined)
      throw new Error(
        "invalid external metric source: neither a value target nor an average value target was set",
      );
    const value = await readExternalMetric(placeOf(of), metric).catch((error: unknown) => {
      const what = `${of.autoscaler.metadata.namespace}/${name}/${selectorText(metric.selector)}`;
      throw new Error(`unable to get external metric ${what}: ${messageOf(error)}`, {
        cause: error,
      });
    });
    if (isAverage) {
      const { replicas, current } = replicasFromAverage(of, value, target.averageValue ?? "0");
      const status = { type: "External", external: { metric, current } } as MetricStatus;
      return { replicas, metric: toldOf(metric), status };
    }
    const replicas = replicasFromValue(of, value, target?.value ?? "0");
    const current = { value: quantityOf(value) };
    const status = { type: "External", external: { metric, current } } as MetricStatus;
    return { replicas, metric: toldOf(metric), status };
  } catch (error) {
    const what = isAverage ? `${name} external metric` : `external metric ${name}`;
    const inSum = `failed to get ${name} external metric value: failed to get ${what}`;
    throw problem("FailedGetExternalMetric", messageOf(error), inSum);
  }
}

function replicasFromValue(of: MetricContext, value: number, wanted: string): number {
  const ready = () => {
    const pods = selectedPods(of);
    if (pods.length === 0)
      throw new Error(
        "unable to calculate ready pods: no pods returned by selector while calculating replica count",
      );
    return pods.filter(
      ({ status }) =>
        status?.phase === "Running" && isConditionTrue(status.conditions as never, "Ready"),
    ).length;
  };
  return replicasForValue(of.current, value / (milliOf(wanted) ?? 0), ready, tolerances(of));
}

function replicasFromAverage(of: MetricContext, value: number, wanted: string) {
  const replicas = replicasForAverage(of.counted, value, milliOf(wanted) ?? 0, tolerances(of));
  const each = of.counted > 0 ? Math.ceil(value / of.counted) : value;
  return { replicas, current: { averageValue: quantityOf(each) } };
}

const tolerances = ({ autoscaler }: MetricContext) => tolerancesOf(autoscaler.spec?.behavior);

function placeOf({ context, autoscaler, signal }: MetricContext) {
  return { client: context.client, namespace: autoscaler.metadata.namespace ?? "", signal };
}

function identifierOf(metric: MetricIdentifier | undefined): MetricIdentifier {
  const { name = "", selector } = metric ?? {};
  return selector ? { name, selector } : { name };
}

/** As Go writes a selector (`%+v`). */
function selectorText(selector: LabelSelector | undefined): string {
  if (!selector) return "nil";
  const labels = Object.entries(selector.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const expressions = (selector.matchExpressions ?? []).map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(" ")}],}`,
  );
  const shown = labels.map(([key, value]) => `${key}: ${value},`).join("");
  return `&LabelSelector{MatchLabels:map[string]string{${shown}},MatchExpressions:[]LabelSelectorRequirement{${expressions.join(",")}},}`;
}

function toldOf({ name, selector }: MetricIdentifier): string {
  return `external metric ${name}(${selectorText(selector)})`;
}

async function within<T>(name: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new Error(`unable to get metric ${name}: ${messageOf(error)}`, { cause: error });
  }
}

function quantityOf(milli: number): string {
  const nano = BigInt(Math.min(milli, Number.MAX_SAFE_INTEGER)) * 1_000_000n;
  return formatQuantity({ nano, format: "DecimalSI" });
}

function problem(reason: string, message: string, inSum: string): MetricProblem {
  return new MetricProblem(reason, message, inSum);
}
