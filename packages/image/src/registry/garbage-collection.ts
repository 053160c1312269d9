import { type Digest } from "../digest.ts";
import { type Stores } from "./exchange.ts";
import { requirementsOf } from "./manifest-check.ts";

/** Files handled between two turns of the event loop: requests continue during a sweep. */
const batch = 32;

/**
 * Mark and sweep. A blob is needed when it is a manifest of some repository, or such a manifest refers to it;
 * anything else is removed if it has not been written or requested since `oldest` (milliseconds since the epoch, in
 * the past). Requests come in between, and none is harmed: every request that relies on a blob (a push, a mount, a
 * check for its existence, a manifest that names it) first marks it as used, and every file is checked once more in
 * the moment of its removal. Killed at any point, the sweep leaves a registry that is whole: a blob is removed last,
 * after everything that led to it.
 */
export async function collectGarbage(
  stores: Stores,
  oldest: number,
): Promise<{ blobs: number; bytes: number }> {
  const { blobs, repositories } = stores;
  const needed = new Set<Digest>();
  const pause = pauses();
  for (const repository of repositories.list()) {
    const here = new Set<Digest>();
    for (const digest of repositories.manifests(repository)) {
      here.add(digest);
      for (const blob of blobsOf(stores, repository, digest)) here.add(blob);
      await pause();
    }
    for (const digest of repositories.blobs(repository)) {
      if (!here.has(digest) && repositories.blobUsedAt(repository, digest) < oldest)
        repositories.removeBlob(repository, digest);
      await pause();
    }
    for (const digest of here) needed.add(digest);
    repositories.removeIfEmpty(repository);
  }

  const collected = { blobs: 0, bytes: 0 };
  for await (const { digest, size, usedAt } of blobs.list()) {
    if (needed.has(digest) || usedAt >= oldest || blobs.usedAt(digest) >= oldest) continue;
    blobs.delete(digest);
    collected.blobs++;
    collected.bytes += size;
    await pause();
  }
  await blobs.count();
  await stores.quota.uses.count(repositories, blobs);
  return collected;
}

/** What a manifest needs. Of one that cannot be read: all that its repository has. */
function blobsOf({ blobs, repositories }: Stores, repository: string, digest: Digest): Digest[] {
  try {
    const manifest = blobs.readManifest(digest);
    return manifest ? requirementsOf(manifest).blobs.map((blob) => blob.digest) : [];
  } catch {
    return repositories.blobs(repository);
  }
}

function pauses(): () => Promise<void> | undefined {
  let count = 0;
  return () => {
    if (++count % batch !== 0) return undefined;
    return new Promise((resolve) => setImmediate(resolve));
  };
}
