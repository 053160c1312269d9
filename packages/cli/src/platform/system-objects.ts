/** The objects that a platform needs before the first Function: what the Helm chart installs on a cluster. */
import { functionCrd, gitRepositoryCrd } from "@spry/function";
import { serverlessCrd } from "@spry/controller";
import { type KubeClient, resources } from "@spry/kube";

export const systemNamespace = "kyma-system";

/** What is changed is applied; the rest, Secret and ServiceAccount, is the Serverless Controller's. */
export async function applySystemObjects(client: KubeClient): Promise<void> {
  const definitions = [functionCrd(), gitRepositoryCrd(), serverlessCrd()];
  await Promise.all([
    client.apply(resources.namespaces, { metadata: { name: systemNamespace } }),
    ...definitions.map((each) => client.apply(resources.customResourceDefinitions, each)),
  ]);
}
