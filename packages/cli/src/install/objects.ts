/** Everything that an installation consists of, in the order in which it is applied. */
import { functionCrd, gitRepositoryCrd } from "@spry/function";
import { type Serverless, serverlessCrd } from "@spry/controller";
import { type CustomResourceDefinition, resources } from "@spry/kube";
import { accessObjects } from "./access.ts";
import { controllerObjects, webhookObjects } from "./controller.ts";
import { dashboardObjects } from "./dashboard.ts";
import { eventingObjects } from "./eventing-objects.ts";
import { gatewayObjects } from "./gateway.ts";
import { networkPolicies } from "./network.ts";
import { type InstalledObject, object } from "./parts.ts";
import { registryObjects } from "./registry.ts";
import { type InstallValues } from "./values.ts";

export const serverlessName = "default";

/** Namespace and definitions: what the rest is made in and of. Helm makes the namespace itself. */
export function definitionObjects(): InstalledObject[] {
  return [functionCrd(), gitRepositoryCrd(), serverlessCrd()].map(definition);
}

function definition({ metadata, spec }: CustomResourceDefinition): InstalledObject {
  // Functions are the user's: they outlive the installation (Helm's word for it).
  const annotations = { ...metadata.annotations, "helm.sh/resource-policy": "keep" };
  const { group, version, kind } = resources.customResourceDefinitions;
  return object(`${group}/${version}`, kind, { ...metadata, annotations }, { spec });
}

export function namespaceObject(name: string): InstalledObject {
  const level = "pod-security.kubernetes.io";
  const labels = { [`${level}/enforce`]: "restricted", [`${level}/enforce-version`]: "latest" };
  return object("v1", "Namespace", { name, labels });
}

export function platformObjects(values: InstallValues): InstalledObject[] {
  return [
    ...accessObjects(values.namespace),
    ...networkPolicies(values),
    ...registryObjects(values),
    ...controllerObjects(values),
    ...gatewayObjects(values),
    ...dashboardObjects(values),
    ...eventingObjects(values),
    ...webhookObjects(values.namespace),
  ];
}

/** The configuration: applied when there is a controller to act on it, and the user's own from then on. */
export function configurationObject(values: InstallValues): InstalledObject {
  const { namespace, serverless } = values;
  const made: Pick<Serverless, "spec"> = { spec: serverless };
  return object(
    "operator.kyma-project.io/v1alpha1",
    "Serverless",
    { name: serverlessName, namespace },
    made,
  );
}

export function installObjects(values: InstallValues): InstalledObject[] {
  return [
    namespaceObject(values.namespace),
    ...definitionObjects(),
    ...platformObjects(values),
    configurationObject(values),
  ];
}
