import { annotations, labels, managedBy, managedByUser, names } from "@spry/function";
import {
  type Clock,
  Controller,
  type ControllerMetrics,
  deepEqual,
  type Informer,
  type KubeClient,
  type KubeObject,
  type Logger,
  type Namespace,
  type Secret,
  type ServiceAccount,
} from "@spry/kube";
import { type Caches } from "./caches.ts";
import { type Settings } from "./config.ts";
import { contains } from "./contains.ts";
import { digestOf } from "./digest.ts";

export interface PropagationOptions {
  client: KubeClient;
  caches: Caches;
  settings: Settings;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
}

/**
 * Gives every namespace what its Functions need from the base namespace: the registry's Secret and
 * the ServiceAccount that may pull from it. A copy that a person has labelled as theirs is left
 * alone.
 */
export function createPropagation(options: PropagationOptions): Controller {
  const { client, caches, settings, ...telling } = options;
  const { namespaces, registrySecrets, serviceAccounts } = caches;
  const excluded = new Set([...settings.excludedNamespaces, settings.baseNamespace]);
  const controller = new Controller({
    name: "propagation",
    ...telling,
    async reconcile(name) {
      const namespace = namespaces.get(name);
      if (!namespace || isTerminating(namespace) || excluded.has(name)) return;
      await ensureCopy(client, registrySecrets, copyOfSecret, settings.baseNamespace, name);
      await ensureCopy(client, serviceAccounts, copyOfAccount, settings.baseNamespace, name);
    },
  });
  const onCopy = ({ object }: { object: KubeObject }) => {
    const { namespace = "" } = object.metadata;
    if (namespace !== settings.baseNamespace) return controller.enqueue(namespace);
    for (const each of namespaces.list()) controller.enqueue(each.metadata.name ?? "");
  };
  namespaces.onChange(({ object }) => controller.enqueue(object.metadata.name ?? ""));
  registrySecrets.onChange(onCopy);
  serviceAccounts.onChange(onCopy);
  return controller;
}

/** All objects of the informer have one name; the base namespace's is the model of the others. */
async function ensureCopy<T extends KubeObject>(
  client: KubeClient,
  informer: Informer<T>,
  copyOf: (model: T) => T,
  baseNamespace: string,
  namespace: string,
): Promise<void> {
  const name = informer.resource.plural === "secrets" ? names.registrySecret : names.serviceAccount;
  const model = informer.get(`${baseNamespace}/${name}`);
  const present = informer.get(`${namespace}/${name}`);
  if (!model || present?.metadata.labels?.[labels.managedBy] === managedByUser) return;
  const copy = copyOf(model);
  const digest = { [annotations.desired]: digestOf([copy, model.metadata.labels]) };
  copy.metadata = { name, namespace, ...labelsOfModel(model), annotations: digest };
  // Others may add to a ServiceAccount, and must not be fought over it; a Secret's data is all
  // ours.
  if (present && contains(present.metadata, copy.metadata)) {
    if (!("data" in copy) || deepEqual((present as Secret).data, copy.data)) return;
  }
  await client.apply(informer.resource, copy, { fieldManager: managedBy });
}

function labelsOfModel({ metadata }: KubeObject): { labels?: Record<string, string> } {
  return metadata.labels ? { labels: metadata.labels } : {};
}

function copyOfSecret({ type, data }: Secret): Secret {
  return { metadata: {}, ...(type ? { type } : {}), ...(data ? { data } : {}) };
}

function copyOfAccount(model: ServiceAccount): ServiceAccount {
  return {
    metadata: {},
    automountServiceAccountToken: model.automountServiceAccountToken ?? false,
    ...(model.imagePullSecrets ? { imagePullSecrets: model.imagePullSecrets } : {}),
  };
}

function isTerminating(namespace: Namespace): boolean {
  const { metadata, status } = namespace;
  return metadata.deletionTimestamp !== undefined || status?.phase === "Terminating";
}
