import {
  validatingPolicyBindingStrategy,
  validatingPolicyStrategy,
} from "../kinds/admission-policy/strategy.ts";
import { apiServiceStrategy } from "../kinds/api-service/strategy.ts";
import { autoscalerStrategy } from "../kinds/autoscaler/strategy.ts";
import { configMapStrategy } from "../kinds/config-map/strategy.ts";
import { controllerRevisionStrategy } from "../kinds/controller-revision/strategy.ts";
import { definitionStrategy } from "../kinds/definition/strategy.ts";
import { claimStrategy } from "../kinds/claim/strategy.ts";
import { disruptionBudgetStrategy } from "../kinds/disruption-budget/strategy.ts";
import { eventStrategy } from "../kinds/event/strategy.ts";
import { leaseStrategy } from "../kinds/lease/strategy.ts";
import { endpointSliceStrategy } from "../kinds/endpoint-slice/strategy.ts";
import { ingressStrategy } from "../kinds/ingress/strategy.ts";
import { limitRangeStrategy } from "../kinds/limit-range/strategy.ts";
import { networkPolicyStrategy } from "../kinds/network-policy/strategy.ts";
import { cronJobStrategy, jobStrategy } from "../kinds/job/strategy.ts";
import { namespaceStrategy } from "../kinds/namespace/strategy.ts";
import { podStrategy } from "../kinds/pod/strategy.ts";
import { priorityClassStrategy } from "../kinds/priority-class/strategy.ts";
import { resourceQuotaStrategy } from "../kinds/resource-quota/strategy.ts";
import {
  clusterRoleBindingStrategy,
  clusterRoleStrategy,
  roleBindingStrategy,
  roleStrategy,
} from "../kinds/role/strategy.ts";
import { secretStrategy } from "../kinds/secret/strategy.ts";
import { serviceStrategy } from "../kinds/service/strategy.ts";
import { webhookConfigurationStrategy } from "../kinds/webhook-configuration/strategy.ts";
import { deploymentStrategy, replicaSetStrategy } from "../kinds/workload/strategy.ts";
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
  ControllerRevision: controllerRevisionStrategy,
  Job: jobStrategy,
  CronJob: cronJobStrategy,
  HorizontalPodAutoscaler: autoscalerStrategy,
  CustomResourceDefinition: definitionStrategy,
  APIService: apiServiceStrategy,
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
