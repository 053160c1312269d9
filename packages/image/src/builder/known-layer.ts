/**
 * Which layer with its dependencies a Function's image has, as the image itself says. The cache that layers are reused from is
 * shared by the builds of a namespace; an image is its Function's own, and named by digest.
 */
import { type RegistryClient } from "../client/registry-client.ts";
import { isNotFound } from "../client/registry-error.ts";
import { type Digest } from "../digest.ts";
import { parseImageName } from "../image-name.ts";
import { isIndex } from "../manifest.ts";
import { type DependencyLayer } from "./dependencies.ts";

const annotation = "io.spry.dependencies";

/** For the manifest: `<key> <digest of the layer>`. */
export function layerAnnotation(layer: DependencyLayer | undefined): Record<string, string> {
  return layer ? { [annotation]: `${layer.key} ${layer.layer.descriptor.digest}` } : {};
}

/** The digest of the layer with this key in an earlier image of the destination; undefined when that does not say. */
export async function knownLayer(
  client: RegistryClient,
  destination: string,
  image: Digest | undefined,
  key: string,
): Promise<string | undefined> {
  if (!image) return undefined;
  const { host, repository } = parseImageName(destination);
  try {
    const { manifest } = await client.getManifest({ host, repository, digest: image });
    const [known, digest] = manifest.annotations?.[annotation]?.split(" ") ?? [];
    return !isIndex(manifest) && known === key ? digest : undefined;
  } catch (error) {
    // It was in another registry, or has been removed.
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
