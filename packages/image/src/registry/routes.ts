import { type Digest, isDigest } from "../digest.ts";
import { isRepository } from "../image-name.ts";
import { RegistryFailure } from "./registry-failure.ts";

/**
 * What a path of the distribution API stands for; names and digests are checked. A tag is not: for readers, a tag
 * that no manifest can have is simply one that does not exist.
 */
export type Route =
  | { kind: "base" }
  | { kind: "catalog" }
  | { kind: "blob"; repository: string; digest: Digest }
  | { kind: "uploads"; repository: string }
  | { kind: "upload"; repository: string; id: string }
  | { kind: "manifest"; repository: string; reference: { tag: string } | { digest: Digest } }
  | { kind: "tags"; repository: string }
  | { kind: "referrers"; repository: string; digest: Digest };

const routePattern =
  /^\/v2\/(.{1,255})\/(?:blobs\/(?<uploads>uploads)\/?(?<upload>[^/]+)?|blobs\/(?<blob>[^/]+)|manifests\/(?<manifest>[^/]+)|(?<tags>tags)\/list|referrers\/(?<referrers>[^/]+))$/;

export function routeOf(pathname: string): Route | undefined {
  if (pathname === "/v2" || pathname === "/v2/") return { kind: "base" };
  if (pathname === "/v2/_catalog") return { kind: "catalog" };
  const match = routePattern.exec(pathname);
  if (!match) return undefined;
  const repository = match[1] ?? "";
  const { uploads, upload, blob, manifest, tags, referrers } = match.groups ?? {};
  if (!isRepository(repository))
    throw new RegistryFailure("NAME_INVALID", "not a valid repository name");
  if (upload !== undefined) return { kind: "upload", repository, id: upload };
  if (uploads !== undefined) return { kind: "uploads", repository };
  if (tags !== undefined) return { kind: "tags", repository };
  if (blob !== undefined) return { kind: "blob", repository, digest: digestIn(blob) };
  if (referrers !== undefined)
    return { kind: "referrers", repository, digest: digestIn(referrers) };
  return { kind: "manifest", repository, reference: referenceIn(manifest ?? "") };
}

/** A digest in a path or query, where clients may write the colon as `%3A`. */
export function digestIn(text: string): Digest {
  const digest = text.replace(/%3a/i, ":");
  if (isDigest(digest)) return digest;
  throw new RegistryFailure(
    "DIGEST_INVALID",
    "expected sha256:<64 hex digits> or sha512:<128 hex digits>",
  );
}

function referenceIn(text: string): { tag: string } | { digest: Digest } {
  if (/:|%3a/i.test(text)) return { digest: digestIn(text) };
  return { tag: text };
}
