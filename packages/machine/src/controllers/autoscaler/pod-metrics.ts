import { type Transport, transportOrigin } from "@spry/kube";

/** The part of the kubelet's `/stats/summary` that an autoscaler reads. */
export interface StatsSummary {
  pods?: {
    podRef: { name: string; namespace: string; uid: string };
    cpu?: { usageNanoCores?: number };
    containers?: { name: string; cpu?: { usageNanoCores?: number } }[];
  }[];
}

/** CPU in use per Pod uid, in cores, over all nodes; a node that does not answer has none. */
export async function readCpuUsage(
  nodes: readonly string[],
  kubelet: (nodeName: string) => Transport | undefined,
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const usage = new Map<string, number>();
  for (const node of nodes) {
    const transport = kubelet(node);
    if (!transport) continue;
    const response = await transport(new Request(`${transportOrigin}/stats/summary`, { signal }));
    if (!response.ok) continue;
    const summary = (await response.json()) as StatsSummary;
    for (const { podRef, cpu } of summary.pods ?? [])
      if (cpu?.usageNanoCores !== undefined) usage.set(podRef.uid, cpu.usageNanoCores / 1e9);
  }
  return usage;
}
