/** The objects that a platform needs before the first Function: what the Helm chart installs on a cluster. */
import { functionCrd, gitRepositoryCrd } from "@spry/function";
import { serverlessCrd } from "@spry/controller";
import { type KubeClient, type Resource, resources } from "@spry/kube";
import { installServing, settingsNamespace } from "@spry/serving";
import { aggregatedRoles } from "../install/access.ts";
import { type InstalledObject } from "../install/parts.ts";
import { identityObjects } from "./identities.ts";

export const systemNamespace = "kyma-system";

/**
 * What is changed is applied; the rest, Secret and ServiceAccount, is the Serverless Controller's. The definitions of Functions
 * are left out where another controller brings its own.
 */
export async function applySystemObjects(
  client: KubeClient,
  { withDefinitions = true }: { withDefinitions?: boolean } = {},
): Promise<void> {
  const definitions = withDefinitions ? [functionCrd(), gitRepositoryCrd(), serverlessCrd()] : [];
  for (const name of [systemNamespace, settingsNamespace])
    await client.apply(resources.namespaces, { metadata: { name } });
  const access = [...identityObjects(systemNamespace), ...aggregatedRoles()];
  await Promise.all([
    ...access.map((each) => client.apply(accessResource(each), each, { force: true })),
    ...definitions.map((each) => client.apply(resources.customResourceDefinitions, each)),
    // The gateway, which starts next, watches them.
    installServing(client),
  ]);
}

function accessResource({ kind }: InstalledObject): Resource {
  const plural = `${kind.toLowerCase()}s`;
  const namespaced = !kind.startsWith("Cluster");
  return { group: "rbac.authorization.k8s.io", version: "v1", kind, plural, namespaced };
}
