/** Git servers of tests are on this machine, where an operator has to allow them. */
export async function allowGitServers(
  platform: { k(command: string, input?: string): Promise<string> },
  addresses: readonly string[],
): Promise<void> {
  const object = {
    apiVersion: "operator.kyma-project.io/v1alpha1",
    kind: "Serverless",
    metadata: { name: "default", namespace: "kyma-system" },
    spec: { gitAllowedAddresses: addresses },
  };
  await platform.k("apply -f -", JSON.stringify(object));
}
