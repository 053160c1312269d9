import type * as admission from "kubernetes-types/admissionregistration/v1.d.ts";
import type * as apiextensions from "kubernetes-types/apiextensions/v1.d.ts";
import type * as apps from "kubernetes-types/apps/v1.d.ts";
import type * as autoscaling from "kubernetes-types/autoscaling/v2.d.ts";
import type * as batch from "kubernetes-types/batch/v1.d.ts";
import type * as coordination from "kubernetes-types/coordination/v1.d.ts";
import type * as core from "kubernetes-types/core/v1.d.ts";
import type * as discovery from "kubernetes-types/discovery/v1.d.ts";
import type * as networking from "kubernetes-types/networking/v1.d.ts";
import type * as policy from "kubernetes-types/policy/v1.d.ts";
import type { KubeObject, ObjectMeta } from "./objects.ts";

/** How a kind is addressed on the wire, and (by its type parameter) what comes back. */
export interface Resource<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Only carries the type. */
  readonly _type?: T;
}

type WithMeta<T> = Omit<T, "metadata"> & { metadata: ObjectMeta };

export type Pod = WithMeta<core.Pod>;
export type PodSpec = core.PodSpec;
export type PodTemplateSpec = core.PodTemplateSpec;
export type Container = core.Container;
export type ContainerStatus = core.ContainerStatus;
export type EnvVar = core.EnvVar;
export type Volume = core.Volume;
export type VolumeMount = core.VolumeMount;
export type Probe = core.Probe;
export type ResourceRequirements = core.ResourceRequirements;
export type Namespace = WithMeta<core.Namespace>;
export type ConfigMap = WithMeta<core.ConfigMap>;
export type Secret = WithMeta<core.Secret>;
export type Service = WithMeta<core.Service>;
export type ServiceAccount = WithMeta<core.ServiceAccount>;
export type Node = WithMeta<core.Node>;
export type ResourceQuota = WithMeta<core.ResourceQuota>;
export type Event = WithMeta<core.Event>;
export type Deployment = WithMeta<apps.Deployment>;
export type ReplicaSet = WithMeta<apps.ReplicaSet>;
export type Job = WithMeta<batch.Job>;
export type CronJob = WithMeta<batch.CronJob>;
export type HorizontalPodAutoscaler = WithMeta<autoscaling.HorizontalPodAutoscaler>;
export type EndpointSlice = WithMeta<discovery.EndpointSlice>;
export type Endpoints = WithMeta<core.Endpoints>;
export type PodDisruptionBudget = WithMeta<policy.PodDisruptionBudget>;
export type NetworkPolicy = WithMeta<networking.NetworkPolicy>;
export type Lease = WithMeta<coordination.Lease>;
export type CustomResourceDefinition = WithMeta<apiextensions.CustomResourceDefinition>;
export type MutatingWebhookConfiguration = WithMeta<admission.MutatingWebhookConfiguration>;
export type ValidatingWebhookConfiguration = WithMeta<admission.ValidatingWebhookConfiguration>;

function resource<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
  namespaced = true,
): Resource<T> {
  const slash = apiVersion.indexOf("/");
  const group = slash < 0 ? "" : apiVersion.slice(0, slash);
  return { group, version: apiVersion.slice(slash + 1), kind, plural, namespaced };
}

/** The built-in kinds that Spry's rooms work with. */
export const resources = {
  pods: resource<Pod>("v1", "Pod", "pods"),
  namespaces: resource<Namespace>("v1", "Namespace", "namespaces", false),
  configMaps: resource<ConfigMap>("v1", "ConfigMap", "configmaps"),
  secrets: resource<Secret>("v1", "Secret", "secrets"),
  services: resource<Service>("v1", "Service", "services"),
  serviceAccounts: resource<ServiceAccount>("v1", "ServiceAccount", "serviceaccounts"),
  nodes: resource<Node>("v1", "Node", "nodes", false),
  events: resource<Event>("v1", "Event", "events"),
  deployments: resource<Deployment>("apps/v1", "Deployment", "deployments"),
  replicaSets: resource<ReplicaSet>("apps/v1", "ReplicaSet", "replicasets"),
  jobs: resource<Job>("batch/v1", "Job", "jobs"),
  cronJobs: resource<CronJob>("batch/v1", "CronJob", "cronjobs"),
  horizontalPodAutoscalers: resource<HorizontalPodAutoscaler>(
    "autoscaling/v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
  ),
  endpoints: resource<Endpoints>("v1", "Endpoints", "endpoints"),
  endpointSlices: resource<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
  resourceQuotas: resource<ResourceQuota>("v1", "ResourceQuota", "resourcequotas"),
  podDisruptionBudgets: resource<PodDisruptionBudget>(
    "policy/v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
  ),
  networkPolicies: resource<NetworkPolicy>(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    "networkpolicies",
  ),
  leases: resource<Lease>("coordination.k8s.io/v1", "Lease", "leases"),
  customResourceDefinitions: resource<CustomResourceDefinition>(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    false,
  ),
  mutatingWebhookConfigurations: resource<MutatingWebhookConfiguration>(
    "admissionregistration.k8s.io/v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    false,
  ),
  validatingWebhookConfigurations: resource<ValidatingWebhookConfiguration>(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    false,
  ),
} as const;

export function apiVersionOf(resource: Resource): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}

/** Path of a collection or, with a name, of one object (Kubernetes API concepts, "Resource URIs"). */
export function pathOf(
  resource: Resource,
  target: {
    namespace?: string | undefined;
    name?: string | undefined;
    subresource?: string | undefined;
  } = {},
): string {
  let path = resource.group
    ? `/apis/${resource.group}/${resource.version}`
    : `/api/${resource.version}`;
  if (resource.namespaced && target.namespace)
    path += `/namespaces/${encodeURIComponent(target.namespace)}`;
  path += `/${resource.plural}`;
  if (target.name) path += `/${encodeURIComponent(target.name)}`;
  if (target.subresource) path += `/${target.subresource}`;
  return path;
}
