import { limitRangeStrategy } from "../admission/limits/validation.ts";
import {
  validatingPolicyBindingStrategy,
  validatingPolicyStrategy,
} from "../admission/policies/validation.ts";
import { priorityClassStrategy } from "../admission/priority/validation.ts";
import { resourceQuotaStrategy } from "../admission/quota/validation.ts";
import {
  clusterRoleBindingStrategy,
  clusterRoleStrategy,
  roleBindingStrategy,
  roleStrategy,
} from "../authorization/role-strategies.ts";
import { autoscalerStrategy } from "../kinds/autoscaler.ts";
import { configMapStrategy } from "../kinds/config-map.ts";
import { definitionStrategy } from "../kinds/custom-resource-definition.ts";
import { claimStrategy } from "../kinds/claim.ts";
import { disruptionBudgetStrategy } from "../kinds/disruption-budget.ts";
import { eventStrategy } from "../kinds/event.ts";
import { leaseStrategy } from "../kinds/lease.ts";
import { endpointSliceStrategy, ingressStrategy, networkPolicyStrategy } from "../kinds/network.ts";
import { cronJobStrategy, jobStrategy } from "../kinds/job.ts";
import { namespaceStrategy } from "../kinds/namespace.ts";
import { podStrategy } from "../kinds/pod.ts";
import { secretStrategy } from "../kinds/secret.ts";
import { serviceStrategy } from "../kinds/service.ts";
import { webhookConfigurationStrategy } from "../kinds/webhook-configuration.ts";
import { deploymentStrategy, replicaSetStrategy } from "../kinds/workload.ts";
import { type Strategy } from "./resource-type.ts";

/** Kind → what it does beyond being stored. Kinds that are not here only are. */
export const strategies: Record<string, Strategy> = {
  Namespace: namespaceStrategy,
  Pod: podStrategy,
  ConfigMap: configMapStrategy,
  Secret: secretStrategy,
  Service: serviceStrategy,
  Deployment: deploymentStrategy,
  ReplicaSet: replicaSetStrategy,
  Job: jobStrategy,
  CronJob: cronJobStrategy,
  HorizontalPodAutoscaler: autoscalerStrategy,
  CustomResourceDefinition: definitionStrategy,
  MutatingWebhookConfiguration: webhookConfigurationStrategy,
  ValidatingWebhookConfiguration: webhookConfigurationStrategy,
  ValidatingAdmissionPolicy: validatingPolicyStrategy,
  ValidatingAdmissionPolicyBinding: validatingPolicyBindingStrategy,
  Event: eventStrategy,
  Node: { selectableFields: ["spec.unschedulable"] },
  Ingress: ingressStrategy,
  NetworkPolicy: networkPolicyStrategy,
  EndpointSlice: endpointSliceStrategy,
  PodDisruptionBudget: disruptionBudgetStrategy,
  PersistentVolumeClaim: claimStrategy,
  Lease: leaseStrategy,
  ResourceQuota: resourceQuotaStrategy,
  LimitRange: limitRangeStrategy,
  PriorityClass: priorityClassStrategy,
  ClusterRole: clusterRoleStrategy,
  ClusterRoleBinding: clusterRoleBindingStrategy,
  Role: roleStrategy,
  RoleBinding: roleBindingStrategy,
};
