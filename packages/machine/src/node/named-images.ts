import { type KubeClient, type PodTemplateSpec, resources } from "@spry/kube";

/**
 * The images that the cluster's workloads name in their templates, whether they have Pods or not: Functions that have gone
 * to zero, and revisions that may be rolled back to.
 */
export async function imagesNamedBy(client: KubeClient): Promise<Set<string>> {
  const [deployments, replicaSets] = await Promise.all([
    client.list(resources.deployments),
    client.list(resources.replicaSets),
  ]);
  const all = [...deployments.items, ...replicaSets.items];
  return new Set(all.flatMap(({ spec }) => imagesIn(spec?.template)));
}

function imagesIn(template: PodTemplateSpec | undefined): string[] {
  const { initContainers = [], containers = [] } = template?.spec ?? {};
  return [...initContainers, ...containers].flatMap(({ image }) => image ?? []);
}
