import { isDigest } from "../digest.ts";
import { type Descriptor, type ImageIndex, type ImageManifest, isIndex } from "../manifest.ts";
import { RegistryFailure } from "./registry-failure.ts";

/** References of one manifest: far above real ones, and the work of checking stays small. */
const referenceLimit = 10_000;

/** Reads a manifest that came from outside, as far as the registry relies on it. */
export function readManifest(bytes: Uint8Array, mediaType: string): ImageManifest | ImageIndex {
  const invalid = (why: string) => new RegistryFailure("MANIFEST_INVALID", why);
  let value: Partial<ImageManifest & ImageIndex> | null;
  try {
    value = JSON.parse(Buffer.from(bytes).toString("utf8")) as typeof value;
  } catch {
    throw invalid("the manifest is not valid JSON");
  }
  if (value === null || typeof value !== "object") throw invalid("the manifest is not an object");
  if (value.schemaVersion !== 2) throw invalid("schemaVersion is not 2");
  if (value.mediaType !== undefined && value.mediaType !== mediaType)
    throw invalid("mediaType and Content-Type differ");
  if (value.manifests === null) throw invalid("manifests is null: expected a list");
  const { config, layers, manifests, subject } = value;
  const listed: unknown = manifests ?? layers;
  const entries: unknown[] = Array.isArray(listed) ? listed : [null];
  if (entries.length > referenceLimit) throw invalid(`more than ${referenceLimit} references`);
  const references = [
    ...entries,
    ...(manifests === undefined ? [config] : []),
    ...(subject === undefined ? [] : [subject]),
  ];
  if (!references.every(isDescriptor))
    throw invalid("expected config and layers, or manifests, with mediaType, digest and size each");
  return value as ImageManifest | ImageIndex;
}

/** A stored manifest. Earlier versions took an index with `"manifests": null`, and its bytes are those that were pushed. */
export function parseStored(bytes: Uint8Array): ImageManifest | ImageIndex {
  const value = JSON.parse(Buffer.from(bytes).toString("utf8")) as ImageManifest | ImageIndex;
  return isIndex(value) ? { ...value, manifests: value.manifests ?? [] } : value;
}

function isDescriptor(value: unknown): value is Descriptor {
  if (value === null || typeof value !== "object") return false;
  const { mediaType, digest, size } = value as Partial<Descriptor>;
  return (
    typeof mediaType === "string" &&
    typeof digest === "string" &&
    isDigest(digest) &&
    Number.isSafeInteger(size) &&
    Number(size) >= 0
  );
}

/** What must be in the repository before the manifest is. */
export function requirementsOf(manifest: ImageManifest | ImageIndex) {
  if (isIndex(manifest)) return { blobs: [], manifests: manifest.manifests };
  // Also layers with `urls`: nodes take every layer from the registry, and share what they have unpacked by its digest.
  return { blobs: [manifest.config, ...manifest.layers], manifests: [] };
}
