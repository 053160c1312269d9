import { autoscalerStrategy } from "../kinds/autoscaler.ts";
import { configMapStrategy } from "../kinds/config-map.ts";
import { definitionStrategy } from "../kinds/custom-resource-definition.ts";
import { cronJobStrategy, jobStrategy } from "../kinds/job.ts";
import { namespaceStrategy } from "../kinds/namespace.ts";
import { podStrategy } from "../kinds/pod.ts";
import { secretStrategy } from "../kinds/secret.ts";
import { serviceStrategy } from "../kinds/service.ts";
import { webhookConfigurationStrategy } from "../kinds/webhook-configuration.ts";
import { deploymentStrategy, replicaSetStrategy } from "../kinds/workload.ts";
import { type Strategy } from "./resource-type.ts";

const eventFields = [
  "involvedObject.kind",
  "involvedObject.namespace",
  "involvedObject.name",
  "involvedObject.uid",
  "involvedObject.apiVersion",
  "involvedObject.resourceVersion",
  "involvedObject.fieldPath",
  "reason",
  "reportingComponent",
  "reportingController",
  "source",
  "type",
];

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
  Event: { selectableFields: eventFields },
  Node: { selectableFields: ["spec.unschedulable"] },
  Ingress: { generation: true },
  NetworkPolicy: { generation: true },
  PodDisruptionBudget: { generation: true },
  ClusterRole: { nameRule: "path" },
  ClusterRoleBinding: { nameRule: "path" },
  Role: { nameRule: "path" },
  RoleBinding: { nameRule: "path" },
};
