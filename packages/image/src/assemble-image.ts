import { type Digest, digestOf } from "./digest.ts";
import { type Body } from "./client/http.ts";
import { bodyOf } from "./client/registry-client.ts";
import { type Layer } from "./layer.ts";
import {
  type ContainerConfig,
  currentPlatform,
  type Descriptor,
  type ImageConfig,
  type ImageManifest,
  mediaTypes,
  type Platform,
} from "./manifest.ts";

/** The image to build on, as `RegistryClient.resolveImage` or `readImageLayout` returns it. */
export interface BaseImage {
  manifest: ImageManifest;
  config: ImageConfig;
  /** Where a layer's content can be read; absent where only a registry has it. */
  bodyOf?: ((layer: Descriptor) => Body) | undefined;
}

/** An image in memory: layers of the base by reference, new ones with their content. */
export interface AssembledImage {
  digest: Digest;
  mediaType: string;
  /** The manifest's bytes. */
  bytes: Uint8Array;
  config: Layer["descriptor"] & { content: Uint8Array };
  layers: Layer[];
}

/** The same date in every image: when it was built is not part of what it is. */
const epoch = "1970-01-01T00:00:00Z";

/**
 * Puts layers on a base, or on nothing. What `config` names replaces the base's; `Env` and `Labels`
 * are merged by name. `created` (RFC 3339) is for a date that belongs to the input, such as a
 * commit's. The same input gives the same digest, anywhere.
 */
export function assembleImage(options: {
  base?: BaseImage | undefined;
  layers: readonly Layer[];
  config?: ContainerConfig;
  annotations?: Record<string, string>;
  platform?: Platform;
  created?: string | undefined;
}): AssembledImage {
  const { base, created = epoch } = options;
  const layers = [...baseLayers(base), ...options.layers];
  const platform = options.platform ?? (base ? platformOf(base.config) : currentPlatform());
  const config: ImageConfig = {
    created,
    architecture: platform.architecture,
    os: platform.os,
    ...(platform.variant === undefined ? {} : { variant: platform.variant }),
    config: mergeConfig(base?.config.config ?? {}, options.config ?? {}),
    rootfs: { type: "layers", diff_ids: layers.map((layer) => layer.diffId) },
    history: layers.map(() => ({ created, created_by: "spry" })),
  };
  const content = Buffer.from(JSON.stringify(config));
  const descriptor = {
    mediaType: mediaTypes.config,
    digest: digestOf(content),
    size: content.length,
  };
  const manifest: ImageManifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: descriptor,
    layers: layers.map((layer) => layer.descriptor),
    ...(options.annotations ? { annotations: sorted(options.annotations) } : {}),
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return {
    digest: digestOf(bytes),
    mediaType: mediaTypes.manifest,
    bytes,
    config: { ...descriptor, content },
    layers,
  };
}

/** The configuration as one more blob to send. */
export function configBlob({ config }: AssembledImage): Layer {
  const { content, ...descriptor } = config;
  return { descriptor, diffId: descriptor.digest, body: bodyOf(content) };
}

function baseLayers(base: BaseImage | undefined): Layer[] {
  if (!base) return [];
  const { layers } = base.manifest;
  const diffIds = base.config.rootfs.diff_ids;
  if (layers.length !== diffIds.length)
    throw new Error(
      `base image: ${layers.length} layers, but ${diffIds.length} in its configuration`,
    );
  return layers.map((layer, index) => ({
    descriptor: ociDescriptor(layer),
    diffId: diffIds[index] as Digest,
    ...(base.bodyOf ? { body: base.bodyOf(layer) } : {}),
  }));
}

/** Docker's media type of a layer means the same, but must not stand in an OCI manifest. */
function ociDescriptor({ mediaType, digest, size }: Descriptor): Descriptor {
  const docker = mediaType === "application/vnd.docker.image.rootfs.diff.tar.gzip";
  return { mediaType: docker ? mediaTypes.layerGzip : mediaType, digest, size };
}

function platformOf({ os, architecture, variant }: ImageConfig): Platform {
  return { os, architecture, ...(variant === undefined ? {} : { variant }) };
}

function mergeConfig(base: ContainerConfig, over: ContainerConfig): ContainerConfig {
  const merged: ContainerConfig = { ...base, ...over };
  const env = new Map<string, string>();
  for (const entry of [...(base.Env ?? []), ...(over.Env ?? [])])
    env.set(entry.split("=", 1)[0] ?? "", entry);
  if (env.size > 0) merged.Env = [...env.values()];
  const labels = { ...base.Labels, ...over.Labels };
  if (Object.keys(labels).length > 0) merged.Labels = sorted(labels);
  return sorted(merged);
}

/** With keys in order, so that the order in which a caller wrote them does not show. */
function sorted<T extends object>(object: T): T {
  const entries = Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries) as T;
}
