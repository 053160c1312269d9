import { algorithmOf, type Digest, digestOf } from "../digest.ts";
import {
  type Descriptor,
  type ImageIndex,
  type ImageManifest,
  isIndex,
  manifestSizeLimit,
} from "../manifest.ts";
import { mayMoveTags, tenantOf } from "./access/grants.ts";
import { isTag } from "../image-name.ts";
import { readManifest, requirementsOf } from "./manifest-check.ts";
import { allowOnly, chunksOf, type Exchange, memoryOf, type Stores } from "./exchange.ts";
import { RegistryFailure } from "./registry-failure.ts";

/** Tags that one push may set. */
const tagLimit = 100;
/** Bytes of a referrer's entry: signatures and attestations have a few short annotations. */
const referrerLimit = 64 * 1024;

interface Target {
  repository: string;
  reference: { tag: string } | { digest: Digest };
}

/** GET, HEAD, PUT and DELETE of `/v2/<name>/manifests/<tag or digest>`. */
export async function serveManifest(exchange: Exchange, target: Target): Promise<void> {
  const { method } = exchange.request;
  if (method === "PUT") return putManifest(exchange, target);
  if (method === "DELETE") return deleteManifest(exchange, target);
  allowOnly(method, "GET", "HEAD", "PUT", "DELETE");
  const { digest, mediaType } = find(exchange.stores, target);
  exchange.stores.repositories.touchManifest(target.repository, digest);
  const { blobs } = exchange.stores;
  if (method === "GET") memoryOf(exchange)(blobs.sizeOf(digest) ?? 0);
  const bytes = blobs.read(digest);
  if (!bytes)
    throw new RegistryFailure(
      "MANIFEST_UNKNOWN",
      `manifest ${digest} was damaged and has been removed`,
    );
  exchange.response.writeHead(200, {
    "content-type": mediaType,
    "content-length": bytes.length,
    "docker-content-digest": digest,
    etag: `"${digest}"`,
  });
  exchange.response.end(method === "HEAD" ? undefined : bytes);
}

async function putManifest(exchange: Exchange, { repository, reference }: Target): Promise<void> {
  const { request, response, stores } = exchange;
  const tags = tagsIn(exchange, reference);
  const bytes = await readBody(exchange, manifestSizeLimit);
  await exchange.confirmGrant();
  const mediaType = request.headers["content-type"] ?? "";
  const { digest, subject, referrer } = check(exchange, { repository, reference }, bytes);
  if (!mayMoveTags(exchange.grant, repository)) requireUnused(stores, repository, tags, digest);

  await stores.blobs.write(bytes, digest, tenantOf(exchange.grant));
  await exchange.asOwner(async () => {
    const record = { mediaType, ...(subject ? { subject } : {}) };
    await stores.repositories.addManifest(repository, digest, record);
    stores.quota.uses.add(repository, digest, bytes.length);
    if (subject) await stores.repositories.addReferrer(repository, subject, referrer);
    // Last: a client that finds the tag finds everything behind it.
    for (const tag of tags) await stores.repositories.setTag(repository, tag, digest);
  });
  if (subject) response.setHeader("oci-subject", subject);
  if ("digest" in reference && tags.length > 0) response.setHeader("oci-tag", tags);
  response.writeHead(201, {
    location: `/v2/${repository}/manifests/${digest}`,
    "docker-content-digest": digest,
    "content-length": 0,
  });
  response.end();
}

/**
 * What is stored of a manifest apart from its bytes. Objects that are made from them, many times as large, are not
 * kept while files are written.
 */
function check(
  { request, stores }: Exchange,
  { repository, reference }: Target,
  bytes: Buffer,
): { digest: Digest; subject: Digest | undefined; referrer: Descriptor } {
  const mediaType = request.headers["content-type"] ?? "";
  const manifest = readManifest(bytes, mediaType);
  const digest =
    "digest" in reference ? digestOf(bytes, algorithmOf(reference.digest)) : digestOf(bytes);
  if ("digest" in reference && reference.digest !== digest)
    throw new RegistryFailure(
      "DIGEST_INVALID",
      `the manifest's digest is ${digest}, not the one in the URL`,
    );
  requireReferences(stores, repository, manifest);
  const referrer = referrerOf(manifest, { mediaType, digest, size: bytes.length });
  const subject = manifest.subject?.digest;
  if (subject && JSON.stringify(referrer).length > referrerLimit)
    throw new RegistryFailure(
      "MANIFEST_INVALID",
      `the annotations of a manifest with a subject may have at most ${referrerLimit} bytes: every list of referrers repeats them`,
      { status: 413 },
    );
  return { digest, subject, referrer };
}

/** The tag in the path, or those of `?tag=` in addition to a digest (distribution-spec, "Pushing Manifests"). */
function tagsIn({ query }: Exchange, reference: Target["reference"]): string[] {
  const tags = "tag" in reference ? [reference.tag] : query.getAll("tag");
  if (!tags.every(isTag)) throw new RegistryFailure("TAG_INVALID", "not a valid tag");
  if (tags.length <= tagLimit) return tags;
  throw new RegistryFailure("TAG_INVALID", `more than ${tagLimit} tags at once`, { status: 414 });
}

function deleteManifest({ response, stores }: Exchange, target: Target): void {
  const { digest } = find(stores, target);
  const { repository, reference } = target;
  if ("tag" in reference) stores.repositories.removeTag(repository, reference.tag);
  else stores.repositories.removeManifest(repository, digest);
  response.writeHead(202, { "content-length": 0 }).end();
}

function find({ repositories }: Stores, { repository, reference }: Target) {
  const digest =
    "digest" in reference ? reference.digest : repositories.tag(repository, reference.tag);
  const record = digest && repositories.manifest(repository, digest);
  if (record) return { digest, mediaType: record.mediaType };
  const wanted = "digest" in reference ? reference.digest : reference.tag;
  throw new RegistryFailure("MANIFEST_UNKNOWN", `no manifest ${wanted} in ${repository}`);
}

/** Tags that may be set once: again only to the same. */
function requireUnused(
  { repositories }: Stores,
  repository: string,
  tags: string[],
  digest: Digest,
): void {
  for (const tag of tags) {
    const before = repositories.tag(repository, tag);
    if (before === undefined || before === digest) continue;
    const message = `the tag ${tag} of ${repository} stands for something else, and builds may not change that`;
    throw new RegistryFailure("DENIED", message, { status: 409 });
  }
}

function requireReferences(
  { blobs, repositories }: Stores,
  repository: string,
  manifest: ImageManifest | ImageIndex,
): void {
  const required = requirementsOf(manifest);
  for (const { digest, size } of required.blobs) {
    const isThere = repositories.hasBlob(repository, digest) && blobs.sizeOf(digest) === size;
    // Until the manifest itself is stored, a sweep goes by this.
    if (isThere) {
      blobs.touch(digest);
      repositories.touchBlob(repository, digest);
    } else
      throw new RegistryFailure(
        "MANIFEST_BLOB_UNKNOWN",
        `no blob ${digest} of ${size} bytes in ${repository}`,
      );
  }
  for (const { digest } of required.manifests)
    if (!repositories.manifest(repository, digest))
      throw new RegistryFailure("MANIFEST_BLOB_UNKNOWN", `no manifest ${digest} in ${repository}`);
}

/** The entry that the specification's "Listing Referrers" asks for. */
function referrerOf(manifest: ImageManifest | ImageIndex, descriptor: Descriptor): Descriptor {
  const artifactType =
    manifest.artifactType ?? (isIndex(manifest) ? undefined : manifest.config.mediaType);
  return {
    ...descriptor,
    ...(artifactType === undefined ? {} : { artifactType }),
    ...(manifest.annotations ? { annotations: manifest.annotations } : {}),
  };
}

/** Held in memory from the first byte until the answer has been sent. */
async function readBody(exchange: Exchange, limit: number): Promise<Buffer> {
  const hold = memoryOf(exchange);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunksOf(exchange.request)) {
    size += chunk.length;
    if (size > limit)
      throw new RegistryFailure("SIZE_INVALID", `a manifest may have at most ${limit} bytes`, {
        status: 413,
      });
    hold(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
