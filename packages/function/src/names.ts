import { createHash } from "node:crypto";

/** The longest name of a Service, a Pod's host name and a label value (RFC 1123 label). */
const maxNameLength = 63;

/** `<prefix><suffix>`; a prefix that is too long is cut, and a digest keeps it unique. */
export function boundedName(prefix: string, suffix = ""): string {
  if (prefix.length + suffix.length <= maxNameLength) return prefix + suffix;
  const digest = createHash("sha256").update(prefix).digest("hex").slice(0, 8);
  const kept = prefix.slice(0, maxNameLength - suffix.length - digest.length - 1);
  return `${kept.replace(/[^a-z0-9]+$/, "")}-${digest}${suffix}`;
}

/** What builds start from is in repositories below this, in the platform's own registry. */
export const platformRepositories = "spry";

/** The names of a Function's children and of the objects that they refer to (docs/compatibility.md#names). */
export const names = {
  configMap: (functionName: string) => functionName,
  deployment: (functionName: string) => functionName,
  service: (functionName: string) => functionName,
  autoscaler: (functionName: string) => functionName,
  buildJob: (functionName: string, buildKey: string) =>
    boundedName(functionName, `-build-${buildKey.slice(0, 10)}`),
  /** The first part of the names of a namespace's repositories in the platform's own registry. */
  repositories: (namespace: string) =>
    // A namespace's name has no dot, so this part belongs to no other one.
    namespace === platformRepositories ? `${namespace}.namespace` : namespace,
  /** The repository of a Function's image in the platform's own registry. */
  repository: (namespace: string, functionName: string) =>
    `${names.repositories(namespace)}/${functionName}`,
  /** Where a namespace's builds keep dependency layers there, a repository for each runtime. */
  dependencyCaches: (namespace: string) => `${names.repositories(namespace)}/dependencies.cache`,
  /**
   * The same two in an external registry, where the contract and limits on depth determine the names. With a hyphen in one of
   * them, `<namespace>-<function>` would belong to several Functions; a dot is in neither name.
   */
  externalRepository: (namespace: string, functionName: string) =>
    [namespace, functionName].some((each) => each.includes("-"))
      ? `${namespace}.${functionName}`
      : `${namespace}-${functionName}`,
  /** Of versions of Spry that did not distinguish such Functions, in any registry. */
  formerRepository: (namespace: string, functionName: string) => `${namespace}-${functionName}`,
  externalDependencyCache: (namespace: string, runtime: string) =>
    `spry-cache/${namespace}-${runtime}`,
  /**
   * A volume for a Secret: its name where that is possible (volumes take only short, plain names).
   */
  secretVolume: (secretName: string) =>
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(secretName)
      ? boundedName(secretName)
      : boundedName(secretName.replace(/[^-a-z0-9]+/g, "-"), `-${shortDigest(secretName)}`),

  container: "function",
  buildContainer: "executor",
  fetchContainer: "repo-fetcher",
  dependencyContainer: "dependency-fetcher",
  scriptContainer: "script-runner",
  serviceAccount: "serverless-function",
  registrySecret: "serverless-registry-config-default",
  /** The user's choice of a registry, which takes precedence over the default. */
  remoteRegistrySecret: "serverless-registry-config",
  /** Ours: the platform's own registry, which holds what builds start from. */
  internalRegistrySecret: "serverless-registry-config-internal",
  packageRegistrySecret: "serverless-package-registry-config",
} as const;

function shortDigest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
