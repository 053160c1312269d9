import { isNotFound, type KubeClient, resources } from "@spry/kube";
import { UserError } from "./user-error.ts";

/** @throws UserError where nothing was found in a namespace because it does not exist; not if the user may not know that */
export async function refuseMissingNamespace(client: KubeClient, name: string): Promise<void> {
  const error: unknown = await client.get(resources.namespaces, { name }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (isNotFound(error))
    throw new UserError(
      `namespace ${name} does not exist`,
      `choose another one with -n, or create it: kubectl create namespace ${name}`,
    );
}
