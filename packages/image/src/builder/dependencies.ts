import { createHash } from "node:crypto";
import { join } from "node:path";
import { assembleImage } from "../assemble-image.ts";
import { type RegistryClient } from "../client/registry-client.ts";
import { isNotFound } from "../client/registry-error.ts";
import { type ImageName, parseImageName } from "../image-name.ts";
import { createLayer, type Layer } from "../layer.ts";
import { type Platform } from "../manifest.ts";
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

/**
 * The layer with a Function's dependencies. It is named by all that determines it, and looked up
 * under that name before anything is installed: only new dependencies cost an installation.
 */
export async function dependencyLayer(
  client: RegistryClient,
  request: DependencyRequest,
): Promise<{ layer: Layer; components: Component[]; source: LayerSource }> {
  const name = parseImageName(`${request.cache}:${dependencyKey(request)}`);
  const found = (await findLayer(client, name)) ?? (await installLayer(client, name, request));
  const { layer } = found;
  return { ...found, source: { name, digests: new Set([layer.descriptor.digest]) } };
}

interface FoundLayer {
  layer: Layer;
  components: Component[];
}

/** Beside the layer, so that whoever reuses it can tell what is in it. */
const componentsLabel = "io.spry.components";

async function findLayer(client: RegistryClient, name: ImageName): Promise<FoundLayer | undefined> {
  try {
    const { manifest, config } = await client.resolveImage(name);
    const [descriptor] = manifest.layers;
    const [diffId] = config.rootfs.diff_ids;
    if (!descriptor || !diffId) return undefined;
    const components = decodeComponents(config.config?.Labels?.[componentsLabel]);
    return { layer: { descriptor, diffId }, components };
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function installLayer(
  client: RegistryClient,
  name: ImageName,
  { installation, platform, scratch, report }: DependencyRequest,
): Promise<FoundLayer> {
  report("installing dependencies");
  const { files, size, components } = await installation.run(scratch);
  assertNoSecrets(files, installation.secrets);
  report(`packing ${files.length} files of dependencies, ${(size / 1024 / 1024).toFixed(1)} MiB`);
  const scratchFile = join(scratch, `${name.tag}.tar.gz`);
  const layer = await createLayer(files, { scratchFile });
  const onSend = () =>
    report(`pushing dependency layer ${(layer.descriptor.size / 1024 / 1024).toFixed(1)} MiB`);
  const config = { Labels: { [componentsLabel]: encodeComponents(components) } };
  await pushImage(client, assembleImage({ layers: [layer], platform, config }), name, { onSend });
  return { layer, components };
}

function dependencyKey({ installation, runtime, platform }: DependencyRequest): string {
  const input = [installation.inputs, runtime, platform];
  return createHash("sha256").update(JSON.stringify(input)).digest("hex").slice(0, 40);
}
