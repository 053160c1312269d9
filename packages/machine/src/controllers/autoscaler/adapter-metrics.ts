import {
  formatLabelSelector,
  isNotFound,
  type KubeClient,
  type LabelSelector,
  messageOf,
  requirementsOf,
  StatusError,
} from "@spry/kube";
import { discoverResources, findKind } from "../api-resources.ts";
import { milliOf, type Sample } from "./pod-metrics.ts";

/**
 * Metrics that adapters bring, such as KEDA's or Prometheus': `custom.metrics.k8s.io` and `external.metrics.k8s.io`
 * (`pkg/controller/podautoscaler/metrics/client.go`). Errors are in the words of kube-controller-manager.
 */

const customGroup = "custom.metrics.k8s.io";
const externalGroup = "external.metrics.k8s.io";
/** In the order in which they are preferred. */
const customVersions = ["v1beta2", "v1beta1"];
const timeoutMs = 15_000;
const maxItems = 10_000;
/** metrics-server's. */
const defaultWindowMs = 60_000;

export interface MetricIdentifier {
  name: string;
  selector?: LabelSelector;
}

interface MetricValue {
  describedObject?: { name?: string };
  timestamp?: string;
  /** Seconds: in v1beta2 `windowSeconds`, before that `window`. */
  windowSeconds?: number;
  window?: number;
  value?: string;
}

interface Place {
  client: KubeClient;
  namespace: string;
  signal: AbortSignal;
}

/** A metric of each of the Pods that a selector matches, by their names. */
export async function readPodMetrics(
  place: Place,
  labelSelector: string,
  metric: MetricIdentifier,
): Promise<Map<string, Sample>> {
  const items = await customMetrics(place, `pods/*/${encodeURIComponent(metric.name)}`, {
    labelSelector,
    metricLabelSelector: textOf(metric.selector),
  });
  if (items.length === 0) throw new Error("no metrics returned from custom metrics API");
  return new Map(
    items.map((item): [string, Sample] => [
      item.describedObject?.name ?? "",
      {
        value: milliOf(item.value) ?? 0,
        at: Date.parse(item.timestamp ?? "") || 0,
        windowMs: windowMsOf(item),
      },
    ]),
  );
}

/** A metric of one object in the autoscaler's namespace, or of that Namespace, in thousandths. */
export async function readObjectMetric(
  place: Place,
  object: { apiVersion?: string; kind: string; name: string },
  metric: MetricIdentifier,
): Promise<number> {
  const { apiVersion = "v1", kind, name } = object;
  const query = { metricLabelSelector: textOf(metric.selector) };
  const isNamespace = kind === "Namespace" && !apiVersion.includes("/");
  const of = isNamespace
    ? "metrics"
    : `${await resourceOf(place, apiVersion, kind)}/${encodeURIComponent(name)}`;
  const items = await customMetrics(place, `${of}/${encodeURIComponent(metric.name)}`, query);
  const [first] = items;
  if (items.length !== 1 || !first)
    throw new Error(
      `unable to fetch metrics from custom metrics API: the custom metrics API server returned ${items.length} results when we asked for exactly one`,
    );
  return milliOf(first.value) ?? 0;
}

/** The sum of a metric of the outside world, in thousandths. */
export async function readExternalMetric(
  { client, namespace, signal }: Place,
  { name, selector }: MetricIdentifier,
): Promise<number> {
  const path = `/apis/${externalGroup}/v1beta1/namespaces/${namespace}/${encodeURIComponent(name)}`;
  const items = await itemsAt({ client, namespace, signal }, path, {
    labelSelector: textOf(selector),
  }).catch((error: unknown) => {
    const why = isUnserved(error)
      ? `the server could not find the requested resource (get ${name}.${externalGroup})`
      : messageOf(error);
    throw new Error(`unable to fetch metrics from external metrics API: ${why}`, { cause: error });
  });
  if (items.length === 0) throw new Error("no metrics returned from external metrics API");
  return items.reduce((sum, { value }) => sum + (milliOf(value) ?? 0), 0);
}

async function customMetrics(
  place: Place,
  of: string,
  query: Record<string, string>,
): Promise<MetricValue[]> {
  try {
    const response = await place.client.raw("GET", "/apis", { signal: bounded(place.signal) });
    const { groups } = (await response.json()) as { groups?: ApiGroup[] };
    const served = groups?.find(({ name }) => name === customGroup)?.versions ?? [];
    const version = customVersions.find((each) => served.some((one) => one.version === each));
    if (!version) throw new Error(`no custom metrics API (${customGroup}) registered`);
    const path = `/apis/${customGroup}/${version}/namespaces/${place.namespace}/${of}`;
    return await itemsAt(place, path, query);
  } catch (error) {
    const message = `unable to fetch metrics from custom metrics API: ${messageOf(error)}`;
    throw new Error(message, { cause: error });
  }
}

interface ApiGroup {
  name: string;
  versions: { version: string }[];
}

async function itemsAt(
  { client, signal }: Place,
  path: string,
  query: Record<string, string>,
): Promise<MetricValue[]> {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(given).toString();
  const url = text ? `${path}?${text}` : path;
  const response = await client.raw("GET", url, { signal: bounded(signal) });
  const { items } = (await response.json()) as { items?: MetricValue[] | null };
  return (items ?? []).slice(0, maxItems);
}

/** `deployments.apps`, as the paths of custom metrics name kinds. */
async function resourceOf(
  { client, signal }: Place,
  apiVersion: string,
  kind: string,
): Promise<string> {
  const found = findKind(await discoverResources(client, bounded(signal)), apiVersion, kind);
  if (!found)
    throw new Error(
      `unable to fetch metrics from custom metrics API: no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`,
    );
  return found.group ? `${found.plural}.${found.group}` : found.plural;
}

function textOf(selector: LabelSelector | undefined): string {
  return selector ? formatLabelSelector(requirementsOf(selector)) : "";
}

function windowMsOf({ windowSeconds, window }: MetricValue): number {
  const seconds = windowSeconds ?? window;
  return seconds === undefined ? defaultWindowMs : seconds * 1000;
}

/** Whether no server has the group; an adapter that lacks the metric says so in its own words. */
function isUnserved(error: unknown): boolean {
  return isNotFound(error) && error instanceof StatusError && !error.status.details?.kind;
}

function bounded(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
}
