import {
  type FunctionRevision,
  functionRevisions,
  functions,
  knative,
  labels,
  managedBy,
  names,
} from "@spry/function";
import {
  type Clock,
  type Container,
  type HorizontalPodAutoscaler,
  Informer,
  type InformerOptions,
  type KubeClient,
  type KubeObject,
  type Logger,
  type ObjectKey,
  type Pod,
  type Resource,
  resources,
} from "@spry/kube";
import { type KnownRevision, knownRevisionOf } from "./function/known-revision.ts";

/**
 * What the controller sees of the cluster: Functions, their children (by label), and of all Secrets
 * and ServiceAccounts only the ones by the few names that every namespace may have.
 */
export interface Caches extends ReturnType<typeof createCaches> {}

/** The key of the Function that a child belongs to, by its label. */
export function functionKeyOf(child: KubeObject): ObjectKey {
  return `${child.metadata.namespace}/${child.metadata.labels?.[labels.functionName]}`;
}

/** The key of the Function that an autoscaler scales, itself or by its Deployment, which has its name. */
export function scaledFunctionOf({ metadata, spec }: HorizontalPodAutoscaler): ObjectKey[] {
  const { kind = "", name = "" } = spec?.scaleTargetRef ?? {};
  return ["Function", "Deployment"].includes(kind) ? [`${metadata.namespace}/${name}`] : [];
}

export function createCaches(client: KubeClient, clock: Clock, log: Logger) {
  const informer = <T extends KubeObject>(
    resource: Resource<T>,
    options: InformerOptions<T> = {},
    // There are thousands of them, of which few are used at a time.
  ) => new Informer(client, resource, { clock, log, resting: !options.transform, ...options });
  const children = <T extends KubeObject>(
    resource: Resource<T>,
    options: InformerOptions<T> = {},
  ) =>
    informer(resource, {
      ...options,
      labelSelector: `${labels.managedBy}=${managedBy}`,
      indexes: { function: (child) => [functionKeyOf(child)] },
    });
  const named = <T extends KubeObject>(resource: Resource<T>, name: string) =>
    informer(resource, { fieldSelector: `metadata.name=${name}` });
  return {
    functions: informer(functions),
    configMaps: children(resources.configMaps),
    jobs: children(resources.jobs),
    pods: children(resources.pods, { transform: whatMattersOf }),
    deployments: children(resources.deployments),
    revisions: children(functionRevisions as Resource<KubeObject> as Resource<KnownRevision>, {
      // What arrives is a revision in full.
      transform: (revision) => knownRevisionOf(revision as KubeObject as FunctionRevision),
    }),
    services: children(resources.services),
    // Those of others, too: two for one Function overrule each other.
    autoscalers: informer(resources.horizontalPodAutoscalers, {
      indexes: { scaled: scaledFunctionOf },
    }),
    kservices: children(knative.services, { mayBeMissing: true }),
    namespaces: informer(resources.namespaces),
    registrySecrets: named(resources.secrets, names.registrySecret),
    remoteRegistrySecrets: named(resources.secrets, names.remoteRegistrySecret),
    internalRegistrySecrets: named(resources.secrets, names.internalRegistrySecret),
    serviceAccounts: named(resources.serviceAccounts, names.serviceAccount),
  };
}

/** Of a Pod, the most numerous kind: only what shows its version and its state. */
function whatMattersOf({ metadata, spec, status }: Pod): Pod {
  const of = (containers: readonly Container[] = []) =>
    containers.map(({ name, image, env, resources: amounts }) => {
      const memory = amounts?.limits?.["memory"];
      return {
        name,
        ...(name === names.container && { image, env }),
        ...(memory !== undefined && { resources: { limits: { memory } } }),
      };
    });
  const [containers, initContainers] = [of(spec?.containers), of(spec?.initContainers)];
  return { metadata, spec: { containers, initContainers }, status } as Pod;
}
