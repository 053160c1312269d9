import {
  Controller,
  type ConfigMap,
  deepEqual,
  Informer,
  isAlreadyExists,
  isNotFound,
  resources,
  isForbidden,
} from "@spry/kube";
import { type ControllerContext } from "./context.ts";

const rootCaName = "kube-root-ca.crt";
const rootCaAnnotations = {
  "kubernetes.io/description":
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
};

/** Only the ConfigMaps of that name: those of people are none of this room's business. */
export function createRootCaMaps({ client, clock, log }: ControllerContext): Informer<ConfigMap> {
  const fieldSelector = `metadata.name=${rootCaName}`;
  return new Informer(client, resources.configMaps, { fieldSelector, clock, log });
}

/**
 * Gives every Namespace what Pods expect to find there: the ServiceAccount `default` and, when the
 * API server's authority is known, the ConfigMap `kube-root-ca.crt`.
 */
export function createServiceAccountController(
  context: ControllerContext,
  rootCa: string | undefined,
  rootCaMaps: Informer<ConfigMap>,
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
  // If a client deletes or changes it, it is restored.
  rootCaMaps.onChange(({ type, object }) => {
    if (type !== "added") controller.enqueue(object.metadata.namespace ?? "");
  });
  return controller;
}

async function ensureRootCa(
  { client }: ControllerContext,
  namespace: string,
  rootCa: string,
): Promise<void> {
  const target = { namespace, name: rootCaName };
  const metadata = { ...target, annotations: rootCaAnnotations };
  const data = { "ca.crt": rootCa };
  try {
    const present = await client.get<ConfigMap>(resources.configMaps, target);
    const { annotations = {} } = present.metadata;
    const isAnnotated = deepEqual({ ...annotations, ...rootCaAnnotations }, annotations);
    if (present.data?.["ca.crt"] === rootCa && isAnnotated) return;
    await client.patch(resources.configMaps, target, { metadata, data });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await client.create(resources.configMaps, { metadata, data }).catch(ignoreLostRace);
  }
}

/** Made by another at the same moment, or the Namespace has begun to go. */
function ignoreLostRace(error: unknown): void {
  if (!isAlreadyExists(error) && !isNotFound(error) && !isForbidden(error)) throw error;
}
