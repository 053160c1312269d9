import { createHash } from "node:crypto";
import { join } from "node:path";
import { assembleImage } from "../assemble-image.ts";
import { type RegistryClient } from "../client/registry-client.ts";
import { isNotFound, RegistryError } from "../client/registry-error.ts";
import { type ImageName, parseImageName } from "../image-name.ts";
import { createLayer, type Layer } from "../layer.ts";
import { type Descriptor, type Platform } from "../manifest.ts";
import { type LayerSource, pushImage } from "../push-image.ts";
import { type Component } from "./attestations.ts";
import { decodeComponents, encodeComponents } from "./components.ts";
import { type Installation } from "./installer.ts";
import { assertNoSecrets } from "./secrets.ts";

export interface DependencyRequest {
  installation: Installation;
  /** `nodejs24`, say. */
  runtime: string;
  platform: Platform;
  /** Repository of dependency layers, one tag for each set of dependencies. */
  cache: string;
  scratch: string;
  report: (line: string) => void;
}

/** A layer of dependencies that is in the registry or on its way there, and the packages in it. */
export interface DependencyLayer {
  /** What determines it: the tag of its repository. */
  key: string;
  layer: Layer;
  components: Component[];
  source: LayerSource;
}

/** Stored with the layer, so that a build that reuses it knows what is in it. */
const componentsLabel = "io.spry.components";

/**
 * Looks for the layer with these dependencies. It is named by all that determines it, and looked up under that
 * name before anything is installed: only new dependencies cost an installation.
 */
export async function findDependencyLayer(
  client: RegistryClient,
  request: DependencyRequest,
): Promise<DependencyLayer | undefined> {
  const name = nameOf(request);
  try {
    const { manifest, config } = await client.resolveImage(name);
    const [descriptor] = manifest.layers;
    const [diffId] = config.rootfs.diff_ids;
    if (!descriptor || !diffId) return undefined;
    const components = decodeComponents(config.config?.Labels?.[componentsLabel]);
    const source = sourceOf(name, descriptor);
    return { key: dependencyKey(request), layer: { descriptor, diffId }, components, source };
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/**
 * Makes the layer of what has been installed in `directory`, and begins to send it to the registry: code that needs
 * it there awaits `source.ready`, which rejects if that failed.
 */
export async function pushDependencyLayer(
  client: RegistryClient,
  request: DependencyRequest,
  directory: string,
): Promise<DependencyLayer> {
  const { installation, platform, scratch, report } = request;
  const name = nameOf(request);
  const { files, size, components } = installation.read(directory);
  assertNoSecrets(files, installation.secrets);
  report(`packing ${files.length} files of dependencies, ${(size / 1024 / 1024).toFixed(1)} MiB`);
  const scratchFile = join(scratch, `${name.tag}.tar`);
  const layer = await createLayer(files, { scratchFile });
  const onSend = () =>
    report(`pushing dependency layer ${(layer.descriptor.size / 1024 / 1024).toFixed(1)} MiB`);
  const config = { Labels: { [componentsLabel]: encodeComponents(components) } };
  const image = assembleImage({ layers: [layer], platform, config });
  const ready = pushImage(client, image, name, { onSend }).catch((error: unknown) => {
    // Another build has taken the name. What this build needs, the layer, exists.
    if (!(error instanceof RegistryError && error.status === 409)) throw error;
    report("another dependency layer has this one's name in the cache: it stays there");
  });
  // Who waits may have given up for another reason.
  ready.catch(() => {});
  const source = { ...sourceOf(name, layer.descriptor), ready };
  return { key: dependencyKey(request), layer, components, source };
}

function nameOf(request: DependencyRequest): ImageName {
  return parseImageName(`${request.cache}:${dependencyKey(request)}`);
}

function sourceOf(name: ImageName, { digest }: Descriptor): LayerSource {
  return { name, digests: new Set([digest]) };
}

function dependencyKey({ installation, runtime, platform }: DependencyRequest): string {
  const input = [installation.inputs, runtime, platform];
  return createHash("sha256").update(JSON.stringify(input)).digest("hex").slice(0, 40);
}

/** Where dependency layers go by default: next to the image, where a login that may push the one may push the other. */
export function defaultCache(destination: string): string {
  const { host, repository } = parseImageName(destination);
  return `${host}/${repository}.cache`;
}
