import { createHash } from "node:crypto";
import { join } from "node:path";
import { assembleImage } from "../assemble-image.ts";
import { attachArtifacts } from "../attach-artifact.ts";
import { type RegistryClient } from "../client/registry-client.ts";
import { formatImageName, parseImageName } from "../image-name.ts";
import { createLayer, type Layer, type LayerFile } from "../layer.ts";
import { type ContainerConfig } from "../manifest.ts";
import { type LayerSource, pushImage } from "../push-image.ts";
import { attestationsOf, type Component } from "./attestations.ts";
import { type Base, openBase } from "./base.ts";
import { dependencyLayer, type DependencyRequest } from "./dependencies.ts";
import { readSource, sourceDigest, type SourceFile } from "./function-source.ts";
import { type Installation } from "./installer.ts";
import { type Monorepo, packageFiles } from "./monorepo.ts";
import { builtSource, hasBuildScript } from "./node-build.ts";
import { nodeDependencies } from "./node-dependencies.ts";
import { withProjectFile } from "./pyproject.ts";
import { pythonDependencies, pythonVersion } from "./python-dependencies.ts";

/** A repository's URL, a commit, and when that was made (RFC 3339). */
export interface Origin {
  url?: string | undefined;
  revision?: string | undefined;
  created?: string | undefined;
}

export interface BuildOptions {
  client: RegistryClient;
  /** Directory with the Function's files. */
  source: string;
  /** `nodejs24`, say. */
  runtime: string;
  /** Runtime image to build on, see `openBase`. */
  base: string;
  /** What the image calls its base, where `base` is only this machine's way to it. */
  baseName?: string | undefined;
  /** The runtime's layer, for a base that has none. */
  runtimeLayer?: { files: LayerFile[]; config: ContainerConfig } | undefined;
  /** Name with tag to push to. */
  destination: string;
  /** Repository for dependency layers; by default beside the destination. */
  dependencyCache?: string | undefined;
  /** What the files must be, see `sourceDigest`; anything else fails with nothing pushed. */
  sourceDigest?: string | undefined;
  /** An `.npmrc` with registries and credentials. */
  npmConfig?: string | undefined;
  /** A `pip.conf` with indexes and credentials. */
  pipConfig?: string | undefined;
  /** What the image is called where people see it. */
  title?: string | undefined;
  /** Where the files are from, for the image to tell. */
  origin?: Origin;
  /** The rest of the repository that the source is from, as far as it is part of it. */
  monorepo?: Monorepo | undefined;
  /** A directory of this build alone. */
  scratch: string;
  /** Gets progress, a line each. */
  report?: (line: string) => void;
}

/** Of package managers. */
const configFiles = new Set([".npmrc", "pip.conf"]);

const functionDirectory = "usr/src/app/function";

/**
 * Builds the image of a Function and pushes it: `[base][dependencies][source]`. Returns the
 * image's name by digest. A `UserError` is the author's to put right, any other error is not.
 */
export async function buildFunctionImage(
  options: BuildOptions,
): Promise<{ image: string; sentBytes: number }> {
  const { client, report = () => {} } = options;
  const files = readSource(options.source);
  const actual = sourceDigest(files);
  if (options.sourceDigest !== undefined && options.sourceDigest !== actual)
    throw new Error(`reading the source: it is ${actual} by now, not ${options.sourceDigest}`);
  const isNode = pythonVersion(options.runtime) === undefined;
  const installation = await installationOf(files, options);
  const needsBuild = isNode && hasBuildScript(files);
  const { monorepo } = options;
  const beside = isNode && monorepo ? packageFiles(monorepo, functionDirectory) : [];

  const [base, unbuilt] = await Promise.all([
    openBase(client, options.base, options),
    needsBuild ? undefined : sourceLayer(files, beside, options.scratch),
  ]);
  const { os, architecture } = base.config;
  const request = {
    runtime: options.runtime,
    platform: { os, architecture },
    cache: options.dependencyCache ?? defaultCache(options.destination),
    scratch: options.scratch,
    report,
  };
  const sources: LayerSource[] = base.source ? [base.source] : [];
  const layers: Layer[] = [];
  const components: Component[] = [];
  if (installation) {
    const dependencies = await dependencyLayer(client, { ...request, installation });
    layers.push(dependencies.layer);
    components.push(...dependencies.components);
    sources.push(dependencies.source);
  }
  const source = unbuilt ?? (await builtLayer(files, beside, options, request));
  layers.push(source);
  const { runtimeLayer } = options;
  if (runtimeLayer) layers.unshift(await createLayer(runtimeLayer.files));

  const target = parseImageName(options.destination);
  const labels = imageLabels(options);
  const image = assembleImage({
    base,
    layers,
    annotations: { ...labels, ...baseAnnotations(base, options) },
    config: { ...runtimeLayer?.config, Labels: { ...runtimeLayer?.config.Labels, ...labels } },
    created: options.origin?.created,
  });
  const onSend = (layer: Layer) => {
    if (layer === source)
      report(`pushing source layer ${(layer.descriptor.size / 1024).toFixed(1)} KiB`);
  };
  const { host, repository } = target;
  const { title, runtime, origin } = options;
  const attestations = attestationsOf({
    digest: image.digest,
    repository,
    title,
    runtime,
    created: origin?.created,
    components,
    source: { digest: actual, url: origin?.url, revision: origin?.revision },
    base: { digest: base.digest, name: options.baseName },
  });
  const subject = { mediaType: image.mediaType, digest: image.digest, size: image.bytes.length };
  // Side by side: documents may come before what they are about, and nothing waits for them alone.
  const [{ digest, sentBytes }] = await Promise.all([
    pushImage(client, image, target, { sources, onSend }),
    attachArtifacts(client, subject, target, attestations),
  ]);
  return { image: formatImageName({ host, repository, digest }), sentBytes };
}

async function installationOf(
  files: readonly SourceFile[],
  { runtime, npmConfig, pipConfig, scratch, monorepo }: BuildOptions,
): Promise<Installation | undefined> {
  const version = pythonVersion(runtime);
  if (version === undefined)
    return nodeDependencies(files, functionDirectory, { npmConfig, monorepo });
  const given = await withProjectFile(files, scratch);
  return pythonDependencies(given, version, functionDirectory, pipConfig);
}

async function builtLayer(
  files: readonly SourceFile[],
  beside: readonly SourceFile[],
  { client, npmConfig, scratch, monorepo }: BuildOptions,
  request: Omit<DependencyRequest, "installation">,
): Promise<Layer> {
  const wanted = { npmConfig, withDev: true, monorepo };
  const installation = nodeDependencies(files, functionDirectory, wanted);
  const built = await builtSource(client, files, functionDirectory, {
    ...request,
    beside,
    ...(installation ? { installation } : {}),
  });
  return sourceLayer(built, beside, scratch);
}

/**
 * The author's files, and those beside the Function's directory. An `.npmrc` or `pip.conf` may hold secrets, and beside a
 * package.json of nothing but blanks Node.js refuses to load modules: both stay out.
 */
function sourceLayer(
  files: readonly SourceFile[],
  beside: readonly SourceFile[],
  scratch: string,
): Promise<Layer> {
  const isBlank = ({ content }: SourceFile) => content.toString().trim() === "";
  const own = files.map((file) => ({ ...file, path: `${functionDirectory}/${file.path}` }));
  const entries = [...own, ...beside].filter((file) => {
    const name = file.path.slice(file.path.lastIndexOf("/") + 1);
    return !configFiles.has(name) && !(name === "package.json" && isBlank(file));
  });
  const size = entries.reduce((sum, { content }) => sum + content.length, 0);
  const inMemory = size < 4 * 1024 * 1024;
  return createLayer(entries, inMemory ? {} : { scratchFile: join(scratch, "source.tar.gz") });
}

/** By the names that the OCI image specification has for them ("Pre-Defined Annotation Keys"). */
function imageLabels({ title, origin = {} }: BuildOptions): Record<string, string> {
  const { url, revision, created } = origin;
  return {
    ...(title ? { "org.opencontainers.image.title": title } : {}),
    ...(url ? { "org.opencontainers.image.source": url } : {}),
    ...(revision ? { "org.opencontainers.image.revision": revision } : {}),
    ...(created ? { "org.opencontainers.image.created": created } : {}),
  };
}

/** A name that only this machine knows is none that an image should tell. */
function baseAnnotations(base: Base, { baseName }: BuildOptions): Record<string, string> {
  return {
    "org.opencontainers.image.base.digest": base.digest,
    ...(baseName ? { "org.opencontainers.image.base.name": baseName } : {}),
  };
}

function defaultCache(destination: string): string {
  const { host, repository } = parseImageName(destination);
  const suffix = createHash("sha256").update(repository).digest("hex").slice(0, 8);
  return `${host}/spry-cache/${suffix}`;
}
