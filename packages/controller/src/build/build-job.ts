import {
  annotations,
  type BuilderFlag,
  buildPaths,
  buildPrograms,
  childLabelsOf,
  dependenciesOf,
  type Function,
  names,
  registryAuthorityVariable,
  resolveResources,
  retryDemandOf,
  runtimeOf,
  sourceDigest,
} from "@spry/function";
import { type Container, type Job, type Volume } from "@spry/kube";
import { type DesiredChild } from "../children.ts";
import { type Settings } from "../config.ts";
import {
  type ActiveRegistry,
  dependencyCacheIn,
  pushNameOf,
  repositoryIn,
} from "../registry/registry.ts";
import { mayRunForeignCode, pushMounts, stepArguments, stepsBefore } from "./build-steps.ts";
import { gitVolumes, sourceFetcher } from "./source-fetcher.ts";
import { containerSecurityContext, podSecurityContext } from "../function/desired/security.ts";

export interface BuildJobInputs {
  buildKey: string;
  /** Of a Git source. */
  commit?: string | undefined;
  registry: ActiveRegistry;
  /** Digest of the image before, in the same repository. */
  previousImage?: string | undefined;
  /** What the build is at the platform's own registry, where it is not simply its namespace. */
  loginSecret?: string | undefined;
}

/**
 * The Job that makes the image of this build key: one Pod, one try; the controller decides about
 * more.
 */
export function desiredBuildJob(
  fn: Function,
  settings: Settings,
  inputs: BuildJobInputs,
): Job & DesiredChild {
  const { name = "", namespace = "" } = fn.metadata;
  const builder = executor(fn, settings, inputs);
  const { commit } = inputs;
  const demand = retryDemandOf(fn);
  const before = [
    ...(commit ? [sourceFetcher(fn, settings, commit, builder)] : []),
    ...(mayRunForeignCode(fn) ? stepsBefore(builder, fn) : []),
  ];
  return {
    metadata: {
      name: names.buildJob(name, inputs.buildKey),
      namespace,
      labels: childLabelsOf(fn),
      annotations: {
        [annotations.buildKey]: inputs.buildKey,
        [annotations.registry]: inputs.registry.pull,
        ...(inputs.loginSecret ? { [annotations.registryLogin]: inputs.loginSecret } : {}),
        ...(demand ? { [annotations.retryBuild]: demand } : {}),
      },
    },
    spec: {
      parallelism: 1,
      completions: 1,
      backoffLimit: 0,
      activeDeadlineSeconds: settings.buildTimeoutSeconds,
      ttlSecondsAfterFinished: settings.jobTtlSeconds,
      template: {
        metadata: {
          labels: childLabelsOf(fn),
          annotations: { [annotations.istioInject]: "false" },
        },
        spec: {
          restartPolicy: "Never",
          serviceAccountName: names.serviceAccount,
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: podSecurityContext,
          ...(before.length > 0 && { initContainers: before }),
          containers: [builder],
          volumes: [...sourceVolumes(fn), ...volumes(inputs)],
        },
      },
    },
  };
}

/** The image that a Function's layers are put on. */
export function baseImageOf(fn: Function, settings: Settings): string | undefined {
  return fn.spec.runtimeImageOverride || settings.runtimeImages[runtimeOf(fn).name];
}

function executor(fn: Function, settings: Settings, inputs: BuildJobInputs): Container {
  const { resources } = resolveResources(
    "build",
    fn.spec.resourceConfiguration?.build,
    settings.defaultBuildPreset,
  );
  const configured = Object.entries(settings.buildEnvironment)
    .filter(([name]) => name !== "DOCKER_CONFIG")
    .map(([name, value]) => ({ name, value }));
  return {
    name: names.buildContainer,
    image: settings.builderImages[runtimeOf(fn).name] ?? settings.builderImage,
    imagePullPolicy: "IfNotPresent",
    // As the image's own entrypoint: on one machine a builder that waits can become it.
    command: mayRunForeignCode(fn)
      ? ["sh", buildPrograms.builder]
      : ["node", buildPrograms.onlyStep],
    args: [...builderArguments(fn, settings, inputs), ...stepArguments("push")],
    env: [
      ...configured,
      ...(settings.registryAuthority
        ? [{ name: registryAuthorityVariable, value: settings.registryAuthority }]
        : []),
      { name: "DOCKER_CONFIG", value: buildPaths.credentials },
    ],
    resources,
    securityContext: containerSecurityContext,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: pushMounts(fn),
  };
}

function builderArguments(fn: Function, settings: Settings, inputs: BuildJobInputs): string[] {
  const { name = "", namespace = "" } = fn.metadata;
  const { buildKey, registry } = inputs;
  const runtime = runtimeOf(fn).name;
  const base = baseImageOf(fn, settings) ?? "";
  const repository = `${registry.push}/${repositoryIn(registry, namespace, name)}`;
  const flags: [flag: BuilderFlag, value: string][] = [
    ["source", buildPaths.source],
    ["runtime", runtime],
    ["base", pushNameOf(base, registry)],
    ["base-name", base],
    ["title", name],
    ["destination", `${repository}:${buildKey}`],
    ["dependency-cache", `${registry.push}/${dependencyCacheIn(registry, namespace, runtime)}`],
    ...plainRegistries(settings, registry).map((host): [BuilderFlag, string] => [
      "plain-registry",
      host,
    ]),
    ...previousImageArguments(inputs),
    ...sourceArguments(fn, inputs),
  ];
  return flags.flatMap(([flag, value]) => [`--${flag}`, value]);
}

/** Whether what the Job makes is pushed to a name with this ending: its registry's address may have changed since. */
export function isDestination(job: Job, ending: string): boolean {
  const { args = [] } = job.spec?.template.spec?.containers[0] ?? {};
  return args[args.indexOf("--destination") + 1]?.endsWith(ending) ?? false;
}

function previousImageArguments({ previousImage }: BuildJobInputs): [BuilderFlag, string][] {
  return previousImage ? [["previous-image", previousImage]] : [];
}

function plainRegistries(settings: Settings, registry: ActiveRegistry): string[] {
  const ours = [registry, ...registry.others].filter(({ isInternal }) => isInternal);
  return [...new Set([...ours.map(({ push }) => push), ...settings.plainRegistries])];
}

/** What the source must be, or, since a commit is its own digest, what the image says of it. */
function sourceArguments(
  fn: Function,
  { commit, registry }: BuildJobInputs,
): [BuilderFlag, string][] {
  const { image } = fn.spec.source;
  if (image !== undefined)
    return [
      ["source-image", pushNameOf(image, registry)],
      ["source-revision", image.split("@")[1] ?? ""],
    ];
  if (commit === undefined) return [["source-digest", sourceDigest(inlineFiles(fn))]];
  const url = fn.spec.source.gitRepository?.url ?? "";
  // A dollar sign would begin a variable.
  const escaped = url.replaceAll("$", "$$$$");
  return [
    ["source-url", escaped],
    ["source-revision", commit],
  ];
}

function inlineFiles(fn: Function): { path: string; content: string }[] {
  const { handlerFile, dependencyFile } = runtimeOf(fn);
  return [
    { path: handlerFile, content: fn.spec.source.inline?.source ?? "" },
    { path: dependencyFile, content: dependenciesOf(fn) },
  ];
}

function sourceVolumes(fn: Function): Volume[] {
  if (fn.spec.source.gitRepository) return gitVolumes(fn);
  if (fn.spec.source.image !== undefined)
    return [{ name: "sources", emptyDir: { sizeLimit: "1Gi" } }];
  const { handlerFile, dependencyFile } = runtimeOf(fn);
  const items = [
    { key: "source", path: handlerFile },
    { key: "dependencies", path: dependencyFile },
  ];
  const name = names.configMap(fn.metadata.name ?? "");
  return [{ name: "sources", configMap: { name, items } }];
}

function volumes({ registry, loginSecret }: BuildJobInputs): Volume[] {
  return [
    { name: "credentials", projected: { sources: credentialSources(registry, loginSecret) } },
    {
      name: "registry-config",
      secret: { secretName: names.packageRegistrySecret, optional: true },
    },
    { name: "build", emptyDir: { sizeLimit: "6Gi" } },
    { name: "handover", emptyDir: { sizeLimit: "1Gi" } },
    { name: "tmp-dir", emptyDir: { sizeLimit: "1Gi" } },
  ];
}

/**
 * A docker configuration directory: who we are where the image goes to, the certificate of its authority if
 * it has one of its own, and who we are where builds start from.
 */
function credentialSources({ secretName, isInternal }: ActiveRegistry, login?: string) {
  const key = ".dockerconfigjson";
  const name = login && isInternal ? login : secretName;
  const internal = login ?? names.internalRegistrySecret;
  return [
    { secret: { name, items: [{ key, path: "config.json" }] } },
    { secret: { name: secretName, optional: true, items: [{ key: "ca.crt", path: "ca.crt" }] } },
    ...(name === internal
      ? []
      : [
          { secret: { name: internal, optional: !login, items: [{ key, path: "internal.json" }] } },
        ]),
  ];
}
