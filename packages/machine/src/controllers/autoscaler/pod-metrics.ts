import {
  type KubeClient,
  messageOf,
  parseQuantity,
  type Resource,
  type UnknownObject,
} from "@spry/kube";

/** `metrics.k8s.io/v1beta1`: what Pods use now. */
const podMetrics: Resource<PodMetricsObject> = {
  group: "metrics.k8s.io",
  version: "v1beta1",
  kind: "PodMetrics",
  plural: "pods",
  namespaced: true,
};

interface PodMetricsObject extends UnknownObject {
  timestamp?: string;
  window?: string;
  containers?: { name: string; usage?: Record<string, string> }[];
}

/** What one Pod uses of a resource. */
export interface Sample {
  /** Thousandths of the resource's unit: of a core, of a byte. */
  value: number;
  /** When it was measured, in milliseconds since the epoch, and over how long before that. */
  at: number;
  windowMs: number;
}

/**
 * The samples of the Pods that a selector matches, by name; of one container, when it is named. A Pod any of whose
 * containers lacks the resource has none. Throws when there are no metrics at all.
 */
export async function readSamples(
  client: KubeClient,
  of: { namespace: string; labelSelector: string; resource: string; container?: string },
  signal: AbortSignal,
): Promise<Map<string, Sample>> {
  const { namespace, labelSelector, resource, container } = of;
  let items: PodMetricsObject[];
  try {
    ({ items } = await client.list(podMetrics, { namespace, labelSelector, signal }));
  } catch (error) {
    const message = `unable to fetch metrics from resource metrics API: ${messageOf(error)}`;
    throw new Error(message, { cause: error });
  }
  if (items.length === 0) throw new Error("no metrics returned from resource metrics API");
  const samples = new Map<string, Sample>();
  for (const { metadata, timestamp = "", window = "", containers = [] } of items) {
    const counted = container ? containers.filter(({ name }) => name === container) : containers;
    const values = counted.flatMap(({ usage }) => milliOf(usage?.[resource]) ?? []);
    if (values.length === 0 || values.length < counted.length) continue;
    samples.set(metadata.name ?? "", {
      value: values.reduce((sum, value) => sum + value, 0),
      at: Date.parse(timestamp) || 0,
      windowMs: durationMs(window),
    });
  }
  return samples;
}

/** Thousandths of a quantity, rounded up; undefined for none. */
export function milliOf(quantity: string | undefined): number | undefined {
  if (quantity === undefined) return undefined;
  const { nano } = parseQuantity(quantity);
  return Number((nano + 999_999n) / 1_000_000n);
}

const unitsMs: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** A duration in the form of Go: `5s`, `1m30s`. */
function durationMs(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)];
  return parts.reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (unitsMs[unit ?? ""] ?? 0),
    0,
  );
}
