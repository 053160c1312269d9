/** A NetworkPolicy that keeps other Pods from a copy with a debugger's port: what is forwarded comes by way of its node. */
import { type KubeClient, messageOf, type Pod, resources, StatusError } from "@spry/kube";

/** Of the copy: what the policy selects it by. */
export const copyLabel = "app.kubernetes.io/instance";

/**
 * Writes the policy for the copy of this name, before the copy begins. A user may lack the right to do so, and debugs all the same:
 * `report` gets what that means.
 */
export async function closeToPods(
  client: KubeClient,
  { namespace, name }: { namespace: string; name: string },
  report: (line: string) => void,
): Promise<void> {
  try {
    await client.create(resources.networkPolicies, {
      metadata: { namespace, name, labels: { [copyLabel]: name } },
      spec: {
        podSelector: { matchLabels: { [copyLabel]: name } },
        policyTypes: ["Ingress"],
        ingress: [],
      },
    });
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    report(
      `other Pods can reach the copy while it runs, because its NetworkPolicy cannot be created: ${messageOf(error)}`,
    );
  }
}

/** The policy goes with the copy, even where this command is killed. */
export async function ownPolicy(client: KubeClient, { metadata }: Pod): Promise<void> {
  const { namespace, name = "", uid = "" } = metadata;
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name, uid }];
  await ignoringRefusal(
    client.patch(resources.networkPolicies, { namespace, name }, { metadata: { ownerReferences } }),
  );
}

export async function removePolicy(
  client: KubeClient,
  target: { namespace: string; name: string },
): Promise<void> {
  await ignoringRefusal(client.delete(resources.networkPolicies, target));
}

/** It may not exist, or the user lacks the right, which has been reported. */
async function ignoringRefusal(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
  }
}
