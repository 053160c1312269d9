import {
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  type Pod,
  transportOrigin,
  type UnknownObject,
} from "@spry/kube";
import { type Engine } from "../engine.ts";
import { badRequest, methodNotAllowed, notFound, unknownPath } from "../errors.ts";
import { type HttpRequest, type HttpResponse } from "../http/message.ts";
import { acceptedForm } from "../http/negotiation.ts";
import { type RequestInfo } from "../http/request-info.ts";
import { jsonResponse } from "../http/responses.ts";
import { timestampOf } from "../timestamp.ts";
import { metricsTable } from "./metrics-table.ts";

export const metricsGroup = "metrics.k8s.io";
const apiVersion = `${metricsGroup}/v1beta1`;

/** What is answered and neither stored nor watched (`k8s.io/metrics/pkg/apis/metrics/v1beta1`). */
export const metricsResources = [
  { plural: "nodes", kind: "NodeMetrics", namespaced: false },
  { plural: "pods", kind: "PodMetrics", namespaced: true },
] as const;

/** CPU in nanocores, memory in KiB, as metrics-server writes them. */
export interface Usage {
  cpu: string;
  memory: string;
}
export interface Metrics extends UnknownObject {
  timestamp: string;
  window: string;
  usage?: Usage;
  containers?: { name: string; usage: Usage }[];
}

interface Figures {
  cpu?: { time?: string; usageNanoCores?: number };
  memory?: { workingSetBytes?: number };
}
/** The part of the kubelet's `/stats/summary` that is passed on. */
interface Summary {
  node?: Figures;
  pods?: { podRef: { uid?: string }; containers?: (Figures & { name: string })[] }[];
}

/** The node computes CPU use over at least so long. */
const window = "5s";
const readTimeoutMs = 10_000;

/** Serves `metrics.k8s.io`: what Pods and nodes use now, as their kubelets measure it. */
export async function metricsResponse(
  engine: Engine,
  request: HttpRequest,
  info: RequestInfo,
): Promise<HttpResponse> {
  const { version, resource, namespace, name, subresource } = info;
  const known = metricsResources.find(({ plural }) => plural === resource);
  const isPlaced = known?.namespaced ? name === undefined || namespace !== undefined : !namespace;
  if (!known || version !== "v1beta1" || subresource !== undefined || !isPlaced)
    throw unknownPath();
  if (request.method !== "GET" && request.method !== "HEAD") throw methodNotAllowed();
  const { searchParams: query } = new URL(request.url);
  if (/^(?:1|true)$/i.test(query.get("watch") ?? "")) throw methodNotAllowed();
  const accepted = acceptedForm(request, { custom: true });
  const metrics = await metricsOf(engine, known.plural, { namespace, name, query }, request.signal);
  if (name !== undefined) {
    const [found] = metrics;
    const target = { group: metricsGroup, plural: known.kind.toLowerCase() };
    if (!found) throw notFound(target, known.namespaced ? `${namespace}/${name}` : name);
    return jsonResponse(
      accepted.form === "table" ? metricsTable([found], accepted.version) : found,
    );
  }
  if (accepted.form === "table") return jsonResponse(metricsTable(metrics, accepted.version));
  return jsonResponse({ kind: `${known.kind}List`, apiVersion, metadata: {}, items: metrics });
}

interface Wanted {
  namespace: string | undefined;
  name: string | undefined;
  query: URLSearchParams;
}

async function metricsOf(
  engine: Engine,
  plural: "nodes" | "pods",
  wanted: Wanted,
  signal: AbortSignal,
): Promise<Metrics[]> {
  const objects = selected(engine, plural, wanted);
  const nodes = objects.map((object) =>
    plural === "nodes"
      ? (object.metadata.name ?? "")
      : ((object as unknown as Pod).spec?.nodeName ?? ""),
  );
  const summaries = new Map<string, Summary>();
  await Promise.all(
    [...new Set(nodes)].map(async (node) => {
      const summary = node ? await readSummary(engine, node, signal) : undefined;
      if (summary) summaries.set(node, summary);
    }),
  );
  return objects.flatMap((object, index) => {
    const summary = summaries.get(nodes[index] ?? "");
    if (!summary) return [];
    return (
      (plural === "nodes"
        ? nodeMetrics(engine, object, summary)
        : podMetrics(engine, object, summary)) ?? []
    );
  });
}

function selected(engine: Engine, plural: string, { namespace, name, query }: Wanted) {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "");
  for (const { field } of fields)
    if (field !== "metadata.name" && field !== "metadata.namespace")
      throw badRequest(`field label not supported: ${field}`);
  return engine.store
    .list(`/${plural}`, namespace ?? "")
    .filter((stored) => name === undefined || stored.name === name)
    .filter((stored) =>
      matchesFields(fields, (field) =>
        field === "metadata.name" ? stored.name : stored.namespace,
      ),
    )
    .map(({ object }) => object)
    .filter(({ metadata }) => matchesLabels(labels, metadata.labels));
}

/** Undefined for a node that does not respond: its metrics are missing, the others are reported. */
async function readSummary(
  { kubelet, log }: Engine,
  node: string,
  signal: AbortSignal,
): Promise<Summary | undefined> {
  const transport = kubelet(node);
  if (!transport) return undefined;
  try {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(readTimeoutMs)]);
    const url = `${transportOrigin}/stats/summary`;
    const answer = await transport(new Request(url, { signal: bounded }));
    return answer.ok ? ((await answer.json()) as Summary) : undefined;
  } catch (error) {
    log.warn(
      { node, error: String(error) },
      "the node did not report the resource usage of its Pods",
    );
    return undefined;
  }
}

function nodeMetrics(
  engine: Engine,
  object: UnknownObject,
  { node }: Summary,
): Metrics | undefined {
  return node?.cpu && { ...commonOf(engine, "NodeMetrics", object, node), usage: usageOf(node) };
}

/** Only of a Pod all of whose running containers have been measured. */
function podMetrics(engine: Engine, object: UnknownObject, { pods }: Summary): Metrics | undefined {
  const pod = object as unknown as Pod;
  const measured = pods?.find(({ podRef }) => podRef.uid === pod.metadata.uid)?.containers ?? [];
  const [first] = measured;
  if (!first || pod.status?.phase !== "Running") return undefined;
  return {
    ...commonOf(engine, "PodMetrics", object, first),
    containers: measured.map((each) => ({ name: each.name, usage: usageOf(each) })),
  };
}

function commonOf({ clock }: Engine, kind: string, object: UnknownObject, { cpu }: Figures) {
  const { name, namespace, labels } = object.metadata;
  const measuredAt = Date.parse(cpu?.time ?? "");
  const metadata = {
    ...(name && { name }),
    ...(namespace && { namespace }),
    creationTimestamp: timestampOf(clock.now()),
    ...(labels && { labels }),
  };
  const at = Number.isNaN(measuredAt) ? clock.now() : measuredAt;
  return { kind, apiVersion, metadata, timestamp: timestampOf(at), window };
}

function usageOf({ cpu, memory }: Figures): Usage {
  return {
    cpu: `${Math.round(cpu?.usageNanoCores ?? 0)}n`,
    memory: `${Math.round((memory?.workingSetBytes ?? 0) / 1024)}Ki`,
  };
}
