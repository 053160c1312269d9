import {
  type KubeClient,
  type KubeObject,
  type PodTemplateSpec,
  type Resource,
  resources,
} from "@spry/kube";

/**
 * The images that the cluster's workloads name in their templates, whether they have Pods or not: Functions that have gone
 * to zero, and what they may be rolled back to.
 */
export async function imagesNamedBy(client: KubeClient): Promise<Set<string>> {
  const [deployments, replicaSets, revisions] = await Promise.all([
    client.list(resources.deployments),
    client.list(resources.replicaSets),
    client.list(controllerRevisions),
  ]);
  const all = [...deployments.items, ...replicaSets.items];
  const ofWorkloads = all.flatMap(({ spec }) => imagesIn(spec?.template));
  return new Set([...ofWorkloads, ...revisions.items.flatMap(imagesOfRevision)]);
}

/** Its content depends on its owner: a pod template (StatefulSets, DaemonSets), or the image with which a Function ran. */
interface ControllerRevision extends KubeObject {
  data?: { image?: unknown; spec?: { template?: PodTemplateSpec } } | null;
}

const controllerRevisions: Resource<ControllerRevision> = {
  group: "apps",
  version: "v1",
  kind: "ControllerRevision",
  plural: "controllerrevisions",
  namespaced: true,
};

/** Clients may have written anything into it. */
function imagesOfRevision({ data }: ControllerRevision): string[] {
  const image = data?.image;
  const template = data?.spec?.template;
  return [
    ...(typeof image === "string" ? [image] : []),
    ...(isTemplate(template) ? imagesIn(template) : []),
  ];
}

function isTemplate(value: unknown): value is PodTemplateSpec {
  const { spec } = (value ?? {}) as PodTemplateSpec;
  const lists = [spec?.containers, spec?.initContainers ?? []];
  return lists.every((list) => Array.isArray(list) && list.every((each) => each !== null));
}

function imagesIn(template: PodTemplateSpec | undefined): string[] {
  const { initContainers = [], containers = [] } = template?.spec ?? {};
  return [...initContainers, ...containers].flatMap(({ image }) => image ?? []);
}
