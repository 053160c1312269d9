import { type Clock } from "../clock.ts";
import { type Digest } from "../digest.ts";
import { type ImageIndex, type ImageManifest } from "../manifest.ts";
import { requirementsOf } from "./manifest-check.ts";
import { type Stores } from "./exchange.ts";

/**
 * Mark and sweep. A blob is needed when it is a manifest of some repository, or such a manifest
 * refers to it; anything else goes once nobody has written or asked for it during the grace period.
 */
export async function collectGarbage(
  stores: Stores,
  clock: Clock,
  graceMs: number,
): Promise<{ blobs: number; bytes: number }> {
  await stores.uploads.removeExpired();
  const oldest = clock.now() - graceMs;
  const garbage: { digest: Digest; size: number }[] = [];
  for await (const blob of stores.blobs.list()) if (blob.usedAt < oldest) garbage.push(blob);

  // From here on without a pause: a push that comes in between can neither be missed nor harmed.
  const needed = neededBlobs(stores);
  const collected = { blobs: 0, bytes: 0 };
  for (const { digest, size } of garbage) {
    if (needed.has(digest)) continue;
    for (const repository of stores.repositories.list())
      stores.repositories.removeBlob(repository, digest);
    stores.blobs.delete(digest);
    collected.blobs++;
    collected.bytes += size;
  }
  return collected;
}

function neededBlobs({ blobs, repositories }: Stores): Set<Digest> {
  const needed = new Set<Digest>();
  for (const repository of repositories.list()) {
    for (const digest of repositories.manifests(repository)) {
      needed.add(digest);
      if (blobs.sizeOf(digest) === undefined) continue;
      const manifest = JSON.parse(blobs.read(digest).toString()) as ImageManifest | ImageIndex;
      for (const reference of requirementsOf(manifest).blobs) needed.add(reference.digest);
    }
  }
  return needed;
}
