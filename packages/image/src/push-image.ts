import { type AssembledImage, configBlob } from "./assemble-image.ts";
import { type Body } from "./client/http.ts";
import { type RegistryClient } from "./client/registry-client.ts";
import { type Digest } from "./digest.ts";
import { type ImageName } from "./image-name.ts";
import { type Layer } from "./layer.ts";

/** Where a layer without content of its own can be had. */
export interface LayerSource {
  name: ImageName;
  digests: ReadonlySet<Digest>;
  /** Resolves when they exist, if they are still being pushed. */
  ready?: Promise<unknown>;
}

/** How much of an image went over the wire. */
export interface PushResult {
  digest: Digest;
  sentBytes: number;
  sentLayers: number;
}

/** Each may hold two connections, and together they must leave some: a copy reads while it writes. */
const parallelBlobs = 6;

/**
 * Pushes an image: blobs that the target has are not sent, those in another repository of the same
 * registry are mounted, the rest is sent; the manifest comes last, so that the name is never half there.
 */
export async function pushImage(
  client: RegistryClient,
  image: AssembledImage,
  target: ImageName,
  options: { sources?: readonly LayerSource[]; onSend?: (layer: Layer) => void } = {},
): Promise<PushResult> {
  const result: PushResult = { digest: image.digest, sentBytes: 0, sentLayers: 0 };
  const unique = new Map<Digest, Layer>();
  for (const layer of [...image.layers, configBlob(image)])
    unique.set(layer.descriptor.digest, layer);

  const bring = async (layer: Layer) => {
    const { digest, size } = layer.descriptor;
    const source = options.sources?.find((candidate) => candidate.digests.has(digest));
    await source?.ready;
    const mountable = source?.name.host === target.host;
    if (mountable && source.name.repository === target.repository) return;
    if (mountable && (await client.mountBlob(target, digest, source.name.repository))) return;
    if (await client.hasBlob(target, digest)) return;
    const body =
      layer.body ?? (source && { size, open: () => client.getBlob(source.name, { digest, size }) });
    if (!body) throw new Error(`layer ${digest} is not available`);
    if (image.layers.includes(layer)) options.onSend?.(layer);
    await putBlob(client, target, digest, body);
    result.sentBytes += size;
    if (image.layers.includes(layer)) result.sentLayers++;
  };
  const pending = [...unique.values()];
  const work = async () => {
    for (let layer = pending.shift(); layer; layer = pending.shift()) await bring(layer);
  };
  await Promise.all(Array.from({ length: parallelBlobs }, work));
  await client.putManifest(target, image.bytes, image.mediaType);
  return result;
}

/** Content that cannot be read breaks the connection; the error reports the cause, not the broken connection. */
async function putBlob(
  client: RegistryClient,
  target: ImageName,
  digest: Digest,
  body: Body,
): Promise<void> {
  let unreadable: unknown;
  const watched = async function* (content: AsyncIterable<Uint8Array>) {
    try {
      yield* content;
    } catch (error) {
      unreadable = error;
      throw error;
    }
  };
  const open = () => {
    const content = body.open();
    return content instanceof Uint8Array ? content : watched(content);
  };
  await client.putBlob(target, digest, { size: body.size, open }).catch((error: unknown) => {
    throw unreadable ?? error;
  });
}
