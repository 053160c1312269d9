import { type ObjectMeta } from "@spry/kube/browser";
import { labelPrefix } from "../labels.ts";
import { type Function, functions, type FunctionSpec, type ResourceProfile } from "../types.ts";
import {
  functionsV1alpha1,
  type FunctionV1alpha1,
  type FunctionV1alpha1Spec,
  type GitRepository,
} from "./types.ts";

/** On a Function: the GitRepository that its source was, for the way back. */
const gitRepositoryName = `${labelPrefix}v1alpha1GitRepoName`;
/** On a v1alpha1 Function: the image that its source is, for the way back. */
const sourceImage = `${labelPrefix}v1alpha2SourceImage`;
/** Presets were labels of the Function. */
const presetLabels = {
  function: `${labelPrefix}function-resources-preset`,
  build: `${labelPrefix}build-resources-preset`,
} as const;

const apiVersionOf = (version: string): string => `${functions.group}/${version}`;

/** The GitRepository that a v1alpha1 Function of the type `git` names; undefined for other Functions. */
export function repositoryNameOf({ spec }: FunctionV1alpha1): string | undefined {
  return spec.type === "git" ? spec.source : undefined;
}

/**
 * Up (docs/compatibility.md#conversion). `repository` is the one that `repositoryNameOf` names. Fields that only v1alpha2
 * has are absent afterwards, as when a manifest leaves them out.
 */
export function toV1alpha2(old: FunctionV1alpha1, repository?: GitRepository): Function {
  const { spec, metadata, status } = old;
  const {
    [presetLabels.function]: profile,
    [presetLabels.build]: buildProfile,
    ...kept
  } = metadata.labels ?? {};
  const git = repositoryNameOf(old);
  const { [sourceImage]: image = "", ...ownAnnotations } = metadata.annotations ?? {};
  // A source that has been written since takes precedence.
  const isImage = image !== "" && git === undefined && !spec.source;
  const { minReplicas, maxReplicas } = spec;
  const next: FunctionSpec = {
    ...pick(spec, ["runtime", "runtimeImageOverride", "env", "labels"]),
    source: isImage ? { image } : git === undefined ? inlineOf(spec) : gitOf(spec, repository),
    replicas: minReplicas ?? 1,
  };
  const configured = {
    ...resourceProfile("function", profile, spec.resources),
    ...resourceProfile("build", buildProfile, spec.buildResources),
  };
  if (Object.keys(configured).length > 0) next.resourceConfiguration = configured;
  if (minReplicas !== undefined || maxReplicas !== undefined) {
    const least = minReplicas ?? 1;
    next.scaleConfig = { minReplicas: least, maxReplicas: maxReplicas ?? least };
  }
  const named = git === undefined ? undefined : { [gitRepositoryName]: git };
  return {
    ...old,
    apiVersion: apiVersionOf(functions.version),
    metadata: withMaps(metadata, kept, { ...ownAnnotations, ...named }),
    spec: next,
    ...(status ? { status: withoutUndefined({ ...status, source: undefined }) } : {}),
  };
}

/**
 * Down. Code stays code; a Git source becomes the GitRepository that it came from, or the empty text; an image the
 * empty text, and an annotation.
 */
export function toV1alpha1(fn: Function): FunctionV1alpha1 {
  const { spec, metadata, status } = fn;
  const { [gitRepositoryName]: repository, ...annotations } = metadata.annotations ?? {};
  const { function: profile, build } = spec.resourceConfiguration ?? {};
  const presets: Record<string, string> = {};
  if (profile?.profile) presets[presetLabels.function] = profile.profile;
  if (build?.profile) presets[presetLabels.build] = build.profile;
  const old: FunctionV1alpha1Spec = {
    ...pick(spec, ["runtime", "runtimeImageOverride", "env", "labels"]),
    ...sourceOf(spec, repository),
    ...(spec.scaleConfig ??
      (spec.replicas === undefined
        ? {}
        : { minReplicas: spec.replicas, maxReplicas: spec.replicas })),
    ...(profile?.resources ? { resources: profile.resources } : {}),
    ...(build?.resources ? { buildResources: build.resources } : {}),
  };
  return {
    ...fn,
    apiVersion: apiVersionOf(functionsV1alpha1.version),
    metadata: withMaps(
      metadata,
      { ...metadata.labels, ...presets },
      { ...annotations, ...(spec.source.image ? { [sourceImage]: spec.source.image } : {}) },
    ),
    spec: old,
    ...(status
      ? { status: withoutUndefined({ ...pick(status, statusFields), source: repository }) }
      : {}),
  } as FunctionV1alpha1;
}

const statusFields = ["conditions", "runtime", "commit", "reference", "baseDir"] as const;

function inlineOf({ source, deps }: FunctionV1alpha1Spec): FunctionSpec["source"] {
  return { inline: { source, ...(deps === undefined ? {} : { dependencies: deps }) } };
}

function gitOf(
  { baseDir = "", reference = "" }: FunctionV1alpha1Spec,
  repository: GitRepository | undefined,
): FunctionSpec["source"] {
  const { url = "", auth } = repository?.spec ?? {};
  return { gitRepository: { url, baseDir, reference, ...(auth ? { auth } : {}) } };
}

function sourceOf({ source }: FunctionSpec, repository: string | undefined): FunctionV1alpha1Spec {
  const { inline, gitRepository } = source;
  if (!gitRepository) {
    const deps = inline?.dependencies;
    return { source: inline?.source ?? "", ...(deps === undefined ? {} : { deps }) };
  }
  const { baseDir, reference } = gitRepository;
  return { type: "git", source: repository ?? "", baseDir, reference };
}

function resourceProfile(
  name: "function" | "build",
  profile: string | undefined,
  resources: ResourceProfile["resources"],
): Record<string, ResourceProfile> {
  if (profile === undefined && resources === undefined) return {};
  const named = profile === undefined ? {} : { profile };
  return { [name]: { ...named, ...(resources === undefined ? {} : { resources }) } };
}

/** Maps that are empty are not written: they would look like a change. */
function withMaps(
  metadata: ObjectMeta,
  labels: Record<string, string>,
  annotations: Record<string, string>,
): ObjectMeta {
  const { labels: _labels, annotations: _annotations, ...rest } = metadata;
  return {
    ...rest,
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
  };
}

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  const entries = keys.flatMap((key) => (from[key] === undefined ? [] : [[key, from[key]]]));
  return Object.fromEntries(entries) as Pick<T, K>;
}

function withoutUndefined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}
