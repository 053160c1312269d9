import { formatQuantity, type HorizontalPodAutoscaler, messageOf } from "@spry/kube";
import { externalProposal, objectProposal, podsProposal } from "./adapter-proposals.ts";
import { groupPods, requestsOf } from "./pod-groups.ts";
import { milliOf, readSamples } from "./pod-metrics.ts";
import {
  type MetricContext,
  MetricProblem,
  type MetricSpec,
  type MetricStatus,
  type Proposal,
  selectedPods,
} from "./proposal.ts";
import { type Calculation, replicasFor, type Target, tolerancesOf } from "./replica-calculation.ts";

/** What `spec.metrics` means when it is empty (`autoscaling/v2` defaults). */
const defaultMetric: MetricSpec = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
};

export function metricsOf({ spec }: HorizontalPodAutoscaler): MetricSpec[] {
  return spec?.metrics?.length ? spec.metrics : [defaultMetric];
}

/** What a metric asks for. Throws a `MetricProblem`. */
export async function proposalOf(of: MetricContext, metric: MetricSpec): Promise<Proposal> {
  switch (metric.type) {
    case "Resource":
      return resourceProposal(of, metric);
    case "ContainerResource":
      return resourceProposal(of, metric);
    case "Pods":
      return podsProposal(of, metric);
    case "Object":
      return objectProposal(of, metric);
    case "External":
      return externalProposal(of, metric);
    default: {
      const message = `unknown metric source type ${JSON.stringify(metric.type)}`;
      throw new MetricProblem("InvalidMetricSourceType", message, message);
    }
  }
}

async function resourceProposal(of: MetricContext, metric: MetricSpec): Promise<Proposal> {
  const { container } = metric.containerResource ?? {};
  const { name, target } = metric.containerResource ??
    metric.resource ?? { name: "", target: undefined };
  const isAverage = target?.averageValue !== undefined;
  try {
    const samples = await readSamples(
      of.context.client,
      {
        namespace: of.autoscaler.metadata.namespace ?? "",
        labelSelector: of.selector,
        resource: name,
        ...(container ? { container } : {}),
      },
      of.signal,
    ).catch((error: unknown) => {
      throw new Error(`unable to get metrics for resource ${name}: ${messageOf(error)}`, {
        cause: error,
      });
    });
    const pods = selectedPods(of);
    if (pods.length === 0)
      throw new Error("no pods returned by selector while calculating replica count");
    const groups = groupPods(pods, samples, name, of.context.clock);
    if (groups.measured.size === 0)
      throw new Error("did not receive metrics for targeted pods (pods might be unready)");
    const wanted: Target = isAverage
      ? { averageMilli: milliOf(target.averageValue) ?? 0 }
      : {
          utilization: target?.averageUtilization ?? 0,
          requests: requestsOf(pods, name, container),
        };
    const tolerances = tolerancesOf(of.autoscaler.spec?.behavior);
    const calculation = replicasFor(of.current, wanted, groups, tolerances);
    const kind = container ? "container resource" : "resource";
    const told = isAverage
      ? `${name} resource`
      : `${name} ${kind} utilization (percentage of request)`;
    return { replicas: calculation.replicas, metric: told, status: statusOf(metric, calculation) };
  } catch (error) {
    const what = isAverage ? "usage" : "utilization";
    const cause = error instanceof Error ? error.message : String(error);
    throw new MetricProblem(
      container ? "FailedGetContainerResourceMetric" : "FailedGetResourceMetric",
      `failed to get ${name} ${what}: ${cause}`,
      container
        ? `failed to get ${container} container metric value`
        : `failed to get ${name} resource metric value`,
    );
  }
}

function statusOf(metric: MetricSpec, { utilization, averageMilli }: Calculation): MetricStatus {
  const { name } = metric.containerResource ?? metric.resource ?? { name: "" };
  const format = name === "memory" ? "BinarySI" : "DecimalSI";
  const nano = BigInt(averageMilli) * 1_000_000n;
  const current = {
    ...(utilization === undefined ? {} : { averageUtilization: utilization }),
    averageValue: formatQuantity({ nano, format }),
  };
  const { container } = metric.containerResource ?? {};
  return container
    ? { type: "ContainerResource", containerResource: { name, container, current } }
    : { type: "Resource", resource: { name, current } };
}
