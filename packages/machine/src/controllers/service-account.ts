import {
  Controller,
  type ConfigMap,
  isAlreadyExists,
  isNotFound,
  resources,
  isForbidden,
} from "@spry/kube";
import { type ControllerContext } from "./context.ts";

const rootCaName = "kube-root-ca.crt";

/**
 * Gives every Namespace what Pods expect to find there: the ServiceAccount `default` and, when the
 * API server's authority is known, the ConfigMap `kube-root-ca.crt`.
 */
export function createServiceAccountController(
  context: ControllerContext,
  rootCa: string | undefined,
): Controller {
  const { caches, client, clock, log } = context;
  const controller = new Controller({
    name: "serviceaccount",
    clock,
    log,
    async reconcile(namespace) {
      const object = caches.namespaces.get(namespace);
      if (!object || object.metadata.deletionTimestamp) return;
      if (!caches.serviceAccounts.get(`${namespace}/default`))
        await client
          .create(resources.serviceAccounts, { metadata: { namespace, name: "default" } })
          .catch(ignoreLostRace);
      if (rootCa) await ensureRootCa(context, namespace, rootCa);
    },
  });
  caches.namespaces.onChange(({ type, object }) => {
    if (type === "added") controller.enqueue(object.metadata.name ?? "");
  });
  caches.serviceAccounts.onChange(({ type, object }) => {
    if (type === "deleted") controller.enqueue(object.metadata.namespace ?? "");
  });
  return controller;
}

async function ensureRootCa(
  { client }: ControllerContext,
  namespace: string,
  rootCa: string,
): Promise<void> {
  const name = rootCaName;
  const data = { "ca.crt": rootCa };
  try {
    const present = await client.get<ConfigMap>(resources.configMaps, { namespace, name });
    if (present.data?.["ca.crt"] === rootCa) return;
    await client.patch(resources.configMaps, { namespace, name }, { data });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await client
      .create(resources.configMaps, { metadata: { namespace, name }, data })
      .catch(ignoreLostRace);
  }
}

/** Made by another at the same moment, or the Namespace has begun to go. */
function ignoreLostRace(error: unknown): void {
  if (!isAlreadyExists(error) && !isNotFound(error) && !isForbidden(error)) throw error;
}
