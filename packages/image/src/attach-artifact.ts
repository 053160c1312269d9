import { bodyOf, type RegistryClient } from "./client/registry-client.ts";
import { digestOf } from "./digest.ts";
import { type ImageName } from "./image-name.ts";
import { type Descriptor, type ImageManifest, mediaTypes } from "./manifest.ts";

/** A document about an image. */
export interface Artifact {
  /** Media type of the content, and what lists of referrers are filtered by. */
  type: string;
  content: Uint8Array;
  annotations?: Record<string, string>;
}

/** OCI image specification 1.1, "Guidance for an Empty Descriptor". */
const empty = Buffer.from("{}");
const emptyDescriptor: Descriptor = {
  mediaType: "application/vnd.oci.empty.v1+json",
  digest: digestOf(empty),
  size: empty.length,
};

/**
 * Stores documents about an image as its referrers (distribution specification 1.1, "Listing
 * Referrers"). The image itself may come later; the same documents give the same manifests.
 */
export async function attachArtifacts(
  client: RegistryClient,
  subject: Descriptor,
  target: Pick<ImageName, "host" | "repository">,
  artifacts: readonly Artifact[],
): Promise<void> {
  const { host, repository } = target;
  const blobs = [empty, ...artifacts.map(({ content }) => content)];
  await Promise.all(
    blobs.map((bytes) => client.putBlob({ host, repository }, digestOf(bytes), bodyOf(bytes))),
  );
  const { mediaType, digest, size } = subject;
  // One after the other: where the list of referrers is a tag, it is read and written again.
  for (const { type, content, annotations } of artifacts) {
    const manifest: ImageManifest = {
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      artifactType: type,
      config: emptyDescriptor,
      layers: [{ mediaType: type, digest: digestOf(content), size: content.length }],
      subject: { mediaType, digest, size },
      ...(annotations ? { annotations } : {}),
    };
    await client.putReferrer({ host, repository }, manifest);
  }
}
