import { apiServiceColumns } from "../kinds/api-service/columns.ts";
import { autoscalerColumns } from "../kinds/autoscaler/columns.ts";
import { claimColumns, volumeColumns } from "../kinds/claim/columns.ts";
import { configMapColumns } from "../kinds/config-map/columns.ts";
import { controllerRevisionColumns } from "../kinds/controller-revision/columns.ts";
import { disruptionBudgetColumns } from "../kinds/disruption-budget/columns.ts";
import { endpointsColumns, endpointSliceColumns } from "../kinds/endpoint-slice/columns.ts";
import { eventColumns } from "../kinds/event/columns.ts";
import { ingressClassColumns, ingressColumns } from "../kinds/ingress/columns.ts";
import { cronJobColumns, jobColumns } from "../kinds/job/columns.ts";
import { leaseColumns } from "../kinds/lease/columns.ts";
import { namespaceColumns } from "../kinds/namespace/columns.ts";
import { networkPolicyColumns } from "../kinds/network-policy/columns.ts";
import { nodeColumns } from "../kinds/node/columns.ts";
import { podColumns } from "../kinds/pod/columns.ts";
import { priorityClassColumns } from "../kinds/priority-class/columns.ts";
import { resourceQuotaColumns } from "../kinds/resource-quota/columns.ts";
import { bindingColumns } from "../kinds/role/columns.ts";
import { secretColumns } from "../kinds/secret/columns.ts";
import { serviceColumns } from "../kinds/service/columns.ts";
import { webhookColumns } from "../kinds/webhook-configuration/columns.ts";
import { deploymentColumns, replicaSetColumns } from "../kinds/workload/columns.ts";
import { type Column, createdAt, nameColumn } from "./column.ts";

/** Kind → its columns after the name. Kinds that are not here have an age alone. */
const afterName: Record<string, Column[]> = {
  APIService: apiServiceColumns,
  ClusterRole: [createdAt],
  ClusterRoleBinding: bindingColumns,
  ConfigMap: configMapColumns,
  ControllerRevision: controllerRevisionColumns,
  CronJob: cronJobColumns,
  CustomResourceDefinition: [createdAt],
  Deployment: deploymentColumns,
  Endpoints: endpointsColumns,
  EndpointSlice: endpointSliceColumns,
  HorizontalPodAutoscaler: autoscalerColumns,
  Ingress: ingressColumns,
  IngressClass: ingressClassColumns,
  Job: jobColumns,
  Lease: leaseColumns,
  LimitRange: [createdAt],
  MutatingWebhookConfiguration: webhookColumns,
  Namespace: namespaceColumns,
  NetworkPolicy: networkPolicyColumns,
  Node: nodeColumns,
  PersistentVolume: volumeColumns,
  PersistentVolumeClaim: claimColumns,
  Pod: podColumns,
  PodDisruptionBudget: disruptionBudgetColumns,
  PriorityClass: priorityClassColumns,
  ReplicaSet: replicaSetColumns,
  ResourceQuota: resourceQuotaColumns,
  Role: [createdAt],
  RoleBinding: bindingColumns,
  Secret: secretColumns,
  Service: serviceColumns,
  ValidatingWebhookConfiguration: webhookColumns,
};

/** The columns of a built-in kind; undefined when it has but a name and an age. */
export function builtinColumnsOf(kind: string): Column[] | undefined {
  if (kind === "Event") return eventColumns;
  const columns = afterName[kind];
  return columns && [nameColumn, ...columns];
}
