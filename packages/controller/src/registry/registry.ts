import { labels, names } from "@spry/function";
import { type Informer, type Secret } from "@spry/kube";

/** Where builders push to, and what nodes pull from. */
export interface RegistryAddresses {
  push: string;
  pull: string;
  /** Of the platform itself, which speaks HTTP without TLS (docs/compatibility.md#internal-registry). */
  isInternal: boolean;
}

/** The registry that a namespace's images go to. */
export interface ActiveRegistry extends RegistryAddresses {
  /** The Secret that says so, with the credentials. */
  secretName: string;
  /** Registries that what a build starts from may be in. */
  others: RegistryAddresses[];
}

/** The Secrets of one name in all namespaces each. */
export interface RegistrySecrets {
  registrySecrets: SecretsByKey;
  remoteRegistrySecrets: SecretsByKey;
  internalRegistrySecrets: SecretsByKey;
}

/** `<namespace>/<name>` → the Secret. */
type SecretsByKey = Pick<Informer<Secret>, "get">;

/**
 * The registry in effect in a namespace, from its own Secrets (docs/compatibility.md#choosing-a-registry): the one that
 * a person chose, else the default, else the platform's own. Undefined when none of them names a registry.
 */
export function activeRegistry(
  secrets: RegistrySecrets,
  namespace: string,
): ActiveRegistry | undefined {
  const remote = secrets.remoteRegistrySecrets.get(`${namespace}/${names.remoteRegistrySecret}`);
  const candidates = [
    remote && isChoice(remote) ? remote : undefined,
    secrets.registrySecrets.get(`${namespace}/${names.registrySecret}`),
    secrets.internalRegistrySecrets.get(`${namespace}/${names.internalRegistrySecret}`),
  ];
  const [active, ...others] = candidates.flatMap((secret) => {
    const addresses = addressesOf(secret);
    return secret && addresses ? [{ secretName: secret.metadata.name ?? "", ...addresses }] : [];
  });
  return active && { ...active, others };
}

/** Other Secrets may have the name: the label makes it a choice, in the namespace or for all. */
function isChoice({ metadata }: Secret): boolean {
  const { [labels.remoteRegistry]: own, [labels.config]: handedOut } = metadata.labels ?? {};
  return own === "config" || handedOut === "credentials";
}

/** Undefined if the Secret names no registry. */
function addressesOf(secret: Secret | undefined): RegistryAddresses | undefined {
  const value = (key: string) => {
    const encoded = secret?.data?.[key];
    return encoded === undefined ? "" : Buffer.from(encoded, "base64").toString().trim();
  };
  const both = value("registryAddress");
  const push = value("pushRegAddr") || both;
  const pull = value("pullRegAddr") || both;
  const isInternal = value("isInternal") === "true";
  return push && pull ? { push, pull, isInternal } : undefined;
}

/** The repository of a Function's image, below the registry's address. */
export function repositoryIn(
  { isInternal }: RegistryAddresses,
  namespace: string,
  name: string,
): string {
  return isInternal ? names.repository(namespace, name) : names.externalRepository(namespace, name);
}

/** Where a Function's images may be that an earlier version of Spry has built, too: they run on by these names. */
export function repositoriesIn(
  registry: RegistryAddresses,
  namespace: string,
  name: string,
): string[] {
  const today = repositoryIn(registry, namespace, name);
  return [...new Set([today, names.formerRepository(namespace, name)])];
}

/** The repository of a namespace's dependency layers for a runtime, below the registry's address. */
export function dependencyCacheIn(
  { isInternal }: RegistryAddresses,
  namespace: string,
  runtime: string,
): string {
  if (!isInternal) return names.externalDependencyCache(namespace, runtime);
  return `${names.dependencyCaches(namespace)}/${runtime}`;
}

/** The name by which a builder reaches an image that nodes know by its pull address. */
export function pushNameOf(image: string, registry: ActiveRegistry): string {
  const known = [registry, ...registry.others].find(({ pull }) => image.startsWith(`${pull}/`));
  return known ? `${known.push}/${image.slice(known.pull.length + 1)}` : image;
}
