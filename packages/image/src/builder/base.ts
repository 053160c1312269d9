import { createReadStream, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type BaseImage } from "../assemble-image.ts";
import { type RegistryClient } from "../client/registry-client.ts";
import { type Digest } from "../digest.ts";
import { readImageLayout } from "../image-layout.ts";
import { type LayerSource } from "../push-image.ts";
import { unpackLayer } from "../unpack-layer.ts";
import { hostBase } from "./host-base.ts";

/** The image that a Function's layers are put on. */
export interface Base extends BaseImage {
  digest: Digest;
  /** Where its layers can be mounted from, when it is in a registry. */
  source?: LayerSource;
}

/**
 * Finds a base image. `oci:DIR[:NAME]` is an OCI layout directory, `oci-archive:FILE[:NAME]` the same
 * as a tar, `host:` is made of this machine's own interpreter and the libraries it needs, anything
 * else is a name in a registry. Of an index, the entry for this platform counts.
 */
export async function openBase(
  client: RegistryClient,
  base: string,
  { runtime, scratch }: { runtime: string; scratch: string },
): Promise<Base> {
  const [, kind = "", rest = ""] = /^(oci|oci-archive|host):(.*)$/s.exec(base) ?? [];
  if (kind === "host") return hostBase(runtime, scratch);
  if (kind === "") {
    const image = await client.resolveImage(base);
    const { name, digest, manifest, config } = image;
    const digests = new Set(manifest.layers.map((layer) => layer.digest));
    const bodyOf: BaseImage["bodyOf"] = (layer) => ({
      size: layer.size,
      open: () => client.getBlob(name, layer),
    });
    return { digest, manifest, config, bodyOf, source: { name, digests } };
  }
  const { path, reference } = splitReference(rest);
  if (kind === "oci") return readImageLayout(path, { reference });
  const dir = join(scratch, "base");
  mkdirSync(dir);
  await unpackLayer(createReadStream(path), dir).catch((cause) => {
    throw new Error(`reading the OCI archive ${path}`, { cause });
  });
  return readImageLayout(dir, { reference });
}

/** `DIR:NAME`, as other tools write it; a colon before a slash belongs to the path. */
function splitReference(text: string): { path: string; reference: string | undefined } {
  const colon = text.indexOf(":", text.lastIndexOf("/") + 1);
  if (colon < 0) return { path: text, reference: undefined };
  return { path: text.slice(0, colon), reference: text.slice(colon + 1) };
}
