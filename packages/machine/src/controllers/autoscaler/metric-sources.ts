import {
  formatQuantity,
  type HorizontalPodAutoscaler,
  matchesLabels,
  messageOf,
  parseLabelSelector,
  type Pod,
} from "@spry/kube";
import { byNamespace, type ControllerContext } from "../context.ts";
import { groupPods, requestsOf } from "./pod-groups.ts";
import { milliOf, readSamples } from "./pod-metrics.ts";
import { type Calculation, replicasFor, type Target, tolerancesOf } from "./replica-calculation.ts";

type Spec = NonNullable<HorizontalPodAutoscaler["spec"]>;
export type MetricSpec = NonNullable<Spec["metrics"]>[number];
export type MetricStatus = NonNullable<
  NonNullable<HorizontalPodAutoscaler["status"]>["currentMetrics"]
>[number];

/** What one metric asks for. */
export interface Proposal {
  replicas: number;
  /** As it is told in conditions and Events. */
  metric: string;
  status: MetricStatus;
}

/** A metric that cannot be had now; the next period may see it mended. */
export class MetricProblem extends Error {
  readonly reason: string;
  /** The same, as it is told together with other metrics. */
  readonly inSum: string;

  constructor(reason: string, message: string, inSum: string) {
    super(message);
    this.reason = reason;
    this.inSum = `${inSum}: ${message}`;
  }
}

interface MetricContext {
  context: ControllerContext;
  autoscaler: HorizontalPodAutoscaler;
  selector: string;
  current: number;
  signal: AbortSignal;
}

const noCustomMetrics =
  "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";

/** What `spec.metrics` means when it is empty (`autoscaling/v2` defaults). */
const defaultMetric: MetricSpec = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
};

export function metricsOf({ spec }: HorizontalPodAutoscaler): MetricSpec[] {
  return spec?.metrics?.length ? spec.metrics : [defaultMetric];
}

/**
 * What a metric asks for. Metrics of Pods, objects and the outside world come from adapters (`custom.metrics.k8s.io`,
 * `external.metrics.k8s.io`) that no machine has by itself: they fail as on a cluster without any.
 */
export async function proposalOf(of: MetricContext, metric: MetricSpec): Promise<Proposal> {
  const { namespace } = of.autoscaler.metadata;
  switch (metric.type) {
    case "Resource":
      return resourceProposal(of, metric);
    case "ContainerResource":
      return resourceProposal(of, metric);
    case "Pods": {
      const message = `unable to get metric ${metric.pods?.metric.name}: ${noCustomMetrics}`;
      throw new MetricProblem("FailedGetPodsMetric", message, "failed to get pods metric value");
    }
    case "Object": {
      const { metric: wanted, describedObject } = metric.object ?? {};
      const message = `unable to get metric ${wanted?.name}: ${describedObject?.kind} on ${namespace} ${describedObject?.name}/${noCustomMetrics}`;
      throw new MetricProblem(
        "FailedGetObjectMetric",
        message,
        "failed to get object metric value",
      );
    }
    case "External": {
      const { metric: wanted, target } = metric.external ?? {};
      const name = wanted?.name ?? "";
      const message = `unable to get external metric ${namespace}/${name}/nil: unable to fetch metrics from external metrics API: the server could not find the requested resource (get ${name}.external.metrics.k8s.io)`;
      const kind = target?.averageValue ? `${name} external metric` : `external metric ${name}`;
      const inSum = `failed to get ${name} external metric value: failed to get ${kind}`;
      throw new MetricProblem("FailedGetExternalMetric", message, inSum);
    }
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

function selectedPods({ context, autoscaler, selector }: MetricContext): Pod[] {
  const requirements = parseLabelSelector(selector);
  return context.caches.pods
    .byIndex(byNamespace, autoscaler.metadata.namespace ?? "")
    .filter(({ metadata }) => matchesLabels(requirements, metadata.labels));
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
