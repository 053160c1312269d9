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
import { type Caches } from "../caches.ts";
import { deleteIfThere } from "../children.ts";
import { type Settings } from "../config.ts";
import { contains } from "../contains.ts";
import { digestOf } from "../digest.ts";
import { copyForNamespace, type RegistryAccess } from "./registry-secret.ts";
import { holdBack } from "./registry-finalizer.ts";

export interface PropagationOptions {
  client: KubeClient;
  caches: Caches;
  settings: Settings;
  /** The platform's own, where each namespace has a login of its own. */
  registry?: RegistryAccess | undefined;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
}

/**
 * Gives every namespace what its Functions need from the base namespace: the registries' Secrets and the
 * ServiceAccount that may pull from it. A copy that users have labelled as theirs is left unchanged.
 */
export function createPropagation(options: PropagationOptions): Controller {
  const { client, caches, settings, registry, ...telling } = options;
  const { namespaces, serviceAccounts } = caches;
  const secrets: [string, Informer<Secret>][] = [
    [names.registrySecret, caches.registrySecrets],
    [names.remoteRegistrySecret, caches.remoteRegistrySecrets],
    [names.internalRegistrySecret, caches.internalRegistrySecrets],
  ];
  const excluded = new Set([...settings.excludedNamespaces, settings.baseNamespace]);
  const controller = new Controller({
    name: "propagation",
    ...telling,
    async reconcile(name) {
      const { baseNamespace } = settings;
      if (name === baseNamespace) {
        for (const [secretName, informer] of secrets)
          await tendModel(
            client,
            informer,
            { namespace: baseNamespace, name: secretName },
            settings,
          );
        return;
      }
      const namespace = namespaces.get(name);
      if (!namespace || isTerminating(namespace) || excluded.has(name)) return;
      const copying = { client, baseNamespace, namespace: name };
      const copyOfSecret = (model: Secret): Secret => {
        const of = { namespace: name, uid: namespace.metadata.uid ?? "" };
        return { metadata: {}, ...copyForNamespace(model, of, registry) };
      };
      for (const [secretName, informer] of secrets)
        await ensureCopy(informer, secretName, copyOfSecret, copying);
      await ensureCopy(serviceAccounts, names.serviceAccount, copyOfAccount, copying);
    },
  });
  const onCopy = ({ object }: { object: KubeObject }) => {
    const { namespace = "" } = object.metadata;
    if (namespace !== settings.baseNamespace) {
      controller.enqueue(settings.baseNamespace);
      return controller.enqueue(namespace);
    }
    for (const each of namespaces.list()) controller.enqueue(each.metadata.name ?? "");
  };
  namespaces.onChange(({ object }) => controller.enqueue(object.metadata.name ?? ""));
  for (const [, informer] of secrets) informer.onChange(onCopy);
  serviceAccounts.onChange(onCopy);
  return controller;
}

/**
 * A finalizer holds a model until its copies are deleted (docs/compatibility.md#registry-finalizer), as long as a controller
 * runs that removes them.
 */
async function tendModel(
  client: KubeClient,
  informer: Informer<Secret>,
  { namespace, name }: { namespace: string; name: string },
  { holdsRegistrySecrets }: Settings,
): Promise<void> {
  const model = informer.get(`${namespace}/${name}`);
  if (!model) return;
  if (!model.metadata.deletionTimestamp)
    return holdBack(client, model, holdsRegistrySecrets && isHandedOut(model, name));
  const copies = [...informer.list()].filter(
    (each) => each.metadata.namespace !== namespace && isOurs(each),
  );
  for (const copy of copies) await deleteIfThere(client, informer.resource, copy);
  // Their end brings the next pass.
  if (copies.length === 0) await holdBack(client, model, false);
}

/** All objects of the informer have the one name; the base namespace's is the model of the others. */
async function ensureCopy<T extends KubeObject>(
  informer: Informer<T>,
  name: string,
  copyOf: (model: T) => T,
  {
    client,
    baseNamespace,
    namespace,
  }: { client: KubeClient; baseNamespace: string; namespace: string },
): Promise<void> {
  const model = informer.get(`${baseNamespace}/${name}`);
  const present = informer.get(`${namespace}/${name}`);
  if (isTheirs(present)) return;
  if (!model || model.metadata.deletionTimestamp || !isHandedOut(model, name)) {
    // Only what is ours, and only Secrets: Pods still use the ServiceAccount.
    if (isOurs(present) && name !== names.serviceAccount)
      await deleteIfThere(client, informer.resource, present);
    return;
  }
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

/** Whether a user has taken it over. */
function isTheirs(copy: KubeObject | undefined): boolean {
  return copy?.metadata.labels?.[labels.managedBy] === managedByUser;
}

function isOurs(copy: KubeObject | undefined): copy is KubeObject {
  return copy?.metadata.annotations?.[annotations.desired] !== undefined && !isTheirs(copy);
}

/** A choice of registry in the base namespace has an effect only with the label, and then for all namespaces. */
function isHandedOut({ metadata }: KubeObject, name: string): boolean {
  return name !== names.remoteRegistrySecret || metadata.labels?.[labels.config] === "credentials";
}

function labelsOfModel({ metadata }: KubeObject): { labels?: Record<string, string> } {
  return metadata.labels ? { labels: metadata.labels } : {};
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
