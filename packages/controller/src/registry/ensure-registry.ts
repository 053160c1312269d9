/** The registry that the configuration asks for, as the objects that the Function Controller goes by. */
import { labels, names } from "@spry/function";
import {
  deepEqual,
  isNotFound,
  type KubeClient,
  resources,
  type Secret,
  type ServiceAccount,
} from "@spry/kube";
import { type ControllerConfig } from "../config.ts";
import { contains } from "../contains.ts";
import {
  type Auths,
  authsIn,
  externalRegistrySecret,
  internalRegistrySecret,
  type RegistryAccess,
} from "./registry-secret.ts";
import { type ServerlessSpec } from "../serverless/types.ts";

export interface RegistryDeps {
  client: KubeClient;
  base: ControllerConfig;
  /** Where the base objects are. */
  namespace: string;
  internalRegistry: RegistryAccess | undefined;
  /** The Secret of the base namespace that chooses a registry for all, whatever the configuration says; or none. */
  chosen: () => Secret | undefined;
}

/** Which registry is in effect, or why none is. */
export type RegistryResult =
  /** `watched`: what it comes from is to be looked at again. */
  { address: string; warnings: string[]; watched: boolean } | { error: string };

/** Sees to the Secrets and the ServiceAccount that every namespace gets copies of. */
export async function ensureRegistry(
  deps: RegistryDeps,
  spec: ServerlessSpec,
): Promise<RegistryResult> {
  const configured = await ensureConfigured(deps, spec);
  const chosen = deps.chosen();
  const { name = "", labels: marks } = chosen?.metadata ?? {};
  const { secretName } = spec.dockerRegistry ?? {};
  if ("error" in configured || marks?.[labels.config] !== "credentials" || secretName === name)
    return configured;
  const address = valueOf(chosen, "registryAddress");
  const what = secretName ? `Secret ${secretName}` : "the internal registry";
  // By the contract (docs/compatibility.md#choosing-a-registry): the registry in effect is not the object's.
  const warning = `Secret ${deps.namespace}/${name} chooses the registry ${address} for all namespaces, and spec.dockerRegistry ${what}: name that Secret there, or delete it`;
  return { ...configured, address, warnings: [...configured.warnings, warning] };
}

async function ensureConfigured(
  deps: RegistryDeps,
  { dockerRegistry = {} }: ServerlessSpec,
): Promise<RegistryResult> {
  const { client, namespace, internalRegistry } = deps;
  const { enableInternal, secretName } = dockerRegistry;
  await ensureServiceAccount(deps);
  const { auths, warnings } = await pullCredentials(deps);
  const watched = (deps.base.imagePullSecrets ?? []).length > 0;
  if (internalRegistry) {
    // Of its own, because what builds start from stays there whatever registry is in force.
    const secret = internalRegistrySecret(await baseNamespace(deps), internalRegistry, auths);
    const metadata = { ...secret.metadata, name: names.internalRegistrySecret };
    await ensureSecret(deps, { ...secret, metadata });
  }
  if (enableInternal === true || (enableInternal === undefined && !secretName)) {
    if (!internalRegistry) return { error: "this platform has no internal registry" };
    // Where the spec does not mention it, a registry that a user has set up stays.
    const theirs = enableInternal === undefined ? await externalDefault(deps) : undefined;
    if (theirs !== undefined) return { address: theirs, warnings, watched };
    const secret = internalRegistrySecret(await baseNamespace(deps), internalRegistry);
    await ensureSecret(deps, secret);
    if (secretName)
      warnings.push(
        `the internal registry is used, Secret ${secretName} is not: spec.dockerRegistry names both`,
      );
    return { address: "internal", warnings, watched };
  }
  if (!secretName)
    return { error: "spec.dockerRegistry: enableInternal is false, and secretName is missing" };
  const given = await client.get(resources.secrets, { namespace, name: secretName }).catch(missing);
  if (!given) return { error: `spec.dockerRegistry: Secret ${namespace}/${secretName} not found` };
  const made = externalRegistrySecret(namespace, given);
  if ("error" in made) return { error: `spec.dockerRegistry: ${made.error}` };
  await ensureSecret(deps, made.secret);
  return { address: made.address, warnings, watched: true };
}

/** By a list, which needs no right that the controller does not have already. */
async function baseNamespace({ client, namespace }: RegistryDeps) {
  const fieldSelector = `metadata.name=${namespace}`;
  const { items } = await client.list(resources.namespaces, { fieldSelector });
  return { namespace, uid: items[0]?.metadata.uid ?? "" };
}

/**
 * Who may pull the platform's own images, by the installation's pull Secrets: builds run from them and start from them,
 * in every namespace.
 */
async function pullCredentials({
  client,
  namespace,
  base,
}: RegistryDeps): Promise<{ auths: Auths; warnings: string[] }> {
  const auths: Auths = {};
  const warnings: string[] = [];
  for (const name of base.imagePullSecrets ?? []) {
    const secret = await client.get(resources.secrets, { namespace, name }).catch(missing);
    const found = authsIn(secret);
    if (found) Object.assign(auths, found);
    else
      warnings.push(
        `imagePullSecrets: Secret ${namespace}/${name} with a .dockerconfigjson not found: builds may not be able to pull their images`,
      );
  }
  return { auths, warnings };
}

async function ensureSecret({ client }: RegistryDeps, desired: Secret): Promise<void> {
  const { name = "", namespace } = desired.metadata;
  const present = await client.get(resources.secrets, { name, namespace }).catch(missing);
  const same = present && deepEqual(present.data, desired.data);
  if (same && present.metadata.labels?.[labels.config] === "credentials") return;
  await client.apply(resources.secrets, desired);
}

/** The address of a registry that the default Secret names and that is not ours. */
async function externalDefault({ client, namespace }: RegistryDeps): Promise<string | undefined> {
  const target = { namespace, name: names.registrySecret };
  const present = await client.get(resources.secrets, target).catch(missing);
  const isOurs = valueOf(present, "isInternal") === "true";
  return present && !isOurs ? valueOf(present, "registryAddress") : undefined;
}

function valueOf(secret: Secret | undefined, key: string): string {
  return Buffer.from(secret?.data?.[key] ?? "", "base64").toString();
}

async function ensureServiceAccount({ client, namespace }: RegistryDeps): Promise<void> {
  const target = { namespace, name: names.serviceAccount };
  const desired: ServiceAccount = {
    metadata: { ...target, labels: { [labels.config]: "service-account" } },
    automountServiceAccountToken: false,
    imagePullSecrets: [
      { name: names.registrySecret },
      { name: names.remoteRegistrySecret },
      { name: names.internalRegistrySecret },
    ],
  };
  const present = await client.get(resources.serviceAccounts, target).catch(missing);
  if (present && contains(present, desired)) return;
  await client.apply(resources.serviceAccounts, desired);
}

function missing(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}
