import { type Transport, transportOrigin } from "@spry/kube";
import { RequestError } from "./http.ts";

/** What the gateway has counted for one Function since the gateway started. */
export interface FunctionMetrics {
  /** Requests by their status. */
  requests: Record<string, number>;
  /** Cumulative: how many requests took at most `bound` seconds. Bounds ascend, and the last is `+Inf`. */
  buckets: [bound: string, count: number][];
  coldStarts: number;
}

/** The metrics of every gateway that runs, in Prometheus' text exposition format, as the user of the transport. */
export type ReadGatewayMetrics = (transport: Transport) => Promise<string[]>;

const maxMetricsBytes = 64 * 1024 ** 2;
const timeoutMs = 10_000;

/** Only for users who may read the Function: the gateway's counters are those of all Functions. */
export async function functionMetrics(
  { namespace, name }: { namespace: string; name: string },
  transport: Transport,
  read: ReadGatewayMetrics,
): Promise<FunctionMetrics> {
  await assertReadable({ namespace, name }, transport);
  const texts = await read(transport).catch(() => {
    throw new RequestError(502, "the gateway's metrics cannot be read");
  });
  const metrics: FunctionMetrics = { requests: {}, buckets: [], coldStarts: 0 };
  const buckets = new Map<string, number>();
  for (const text of texts) {
    if (text.length > maxMetricsBytes)
      throw new RequestError(502, "the gateway's metrics are too large");
    add({ namespace, name }, text, metrics, buckets);
  }
  metrics.buckets = [...buckets];
  return metrics;
}

/** Reads the metrics at a URL, with the token that it expects, if any; rejects where they cannot be read. */
export async function metricsAt(url: string, token?: string): Promise<string> {
  const response = await fetch(url, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (!response.ok) throw new Error(`${url} responded with ${response.status}`);
  return response.text();
}

/** Adds what one gateway has counted to what others have. */
function add(
  { namespace, name }: { namespace: string; name: string },
  text: string,
  metrics: FunctionMetrics,
  buckets: Map<string, number>,
): void {
  const labels = `{namespace="${namespace}",function="${name}",`;
  for (const line of text.split("\n")) {
    const at = line.indexOf(labels);
    if (at < 0) continue;
    const metric = line.slice(0, at);
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    const label = (key: string) => new RegExp(`\\b${key}="([^"]*)"`).exec(line)?.[1] ?? "";
    if (metric === "spry_gateway_request_duration_seconds_count")
      metrics.requests[label("code")] = (metrics.requests[label("code")] ?? 0) + value;
    else if (metric === "spry_gateway_request_duration_seconds_bucket")
      buckets.set(label("le"), (buckets.get(label("le")) ?? 0) + value);
    else if (metric === "spry_gateway_cold_start_seconds_count") metrics.coldStarts += value;
  }
}

/** A user who may not read a Function may neither call it here nor see its metrics. */
export async function assertReadable(
  { namespace, name }: { namespace: string; name: string },
  transport: Transport,
  signal?: AbortSignal,
): Promise<void> {
  const path = `/apis/serverless.kyma-project.io/v1alpha2/namespaces/${namespace}/functions/${name}`;
  const found = await transport(new Request(transportOrigin + path, signal ? { signal } : {}));
  await found.body?.cancel();
  if (found.status === 200) return;
  const why: Record<number, string> = {
    401: "the login is not valid, or has expired",
    403: `you may not read Function ${namespace}/${name}`,
    404: `Function ${namespace}/${name} not found`,
  };
  throw new RequestError(
    found.status < 500 ? found.status : 502,
    why[found.status] ?? `the API server responded with ${found.status}`,
  );
}
