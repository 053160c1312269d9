import { type Clock } from "../clock.ts";
import { type Logger } from "../log.ts";
import { collectGarbage } from "./garbage-collection.ts";
import { type Stores } from "./exchange.ts";
import {
  type ImagesInUse,
  type Removable,
  removableManifests,
  type RetentionPolicy,
} from "./retention.ts";

/** What a cleaning removed. */
export interface CleaningResult {
  manifests: number;
  blobs: number;
  bytes: number;
}

/** The share of what is dispensable that goes at a time while the registry is too full. */
const spareShare = 4;

/**
 * Removes what is not needed; if the registry is too full after that, also previous images and dependency layers,
 * those first that have not been requested for the longest time.
 */
export async function clean(
  stores: Stores,
  given: ImagesInUse,
  policy: RetentionPolicy,
  clock: Clock,
  log: Logger,
): Promise<CleaningResult> {
  await stores.uploads.removeExpired();
  await stores.aliases.keepOnly(given.references);
  const inUse = { ...given, references: stores.aliases.withToday(given.references) };
  const oldest = clock.now() - policy.graceMs;
  const removable: Removable[] = [];
  for (const repository of stores.repositories.list()) {
    try {
      removable.push(...removableManifests(stores, repository, inUse, policy, clock.now()));
    } catch (error) {
      // All of it stays; the other repositories are cleaned.
      log.error(
        { repository, error },
        "repository could not be read: it is left out of this clean-up",
      );
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  const result: CleaningResult = { manifests: 0, blobs: 0, bytes: 0 };
  const remove = async (manifests: Removable[]) => {
    result.manifests += await removeManifests(stores, manifests, oldest);
    const { blobs, bytes } = await collectGarbage(stores, oldest);
    result.blobs += blobs;
    result.bytes += bytes;
  };
  await remove(removable.filter(({ spare }) => !spare));
  const spare = removable.filter((each) => each.spare).sort((a, b) => a.usedAt - b.usedAt);
  const step = Math.ceil(spare.length / spareShare);
  while (spare.length > 0 && stores.quota.isUnderPressure) {
    await remove(spare.splice(0, step));
    stores.quota.relieved();
  }
  stores.quota.relieved();
  return result;
}

/** Removes those that have still not been requested or pushed again; on disk when it returns. */
async function removeManifests(
  { repositories }: Stores,
  manifests: Removable[],
  oldest: number,
): Promise<number> {
  let count = 0;
  for (const { repository, digest, tags } of manifests) {
    if (repositories.manifestUsedAt(repository, digest) >= oldest) continue;
    repositories.removeManifest(repository, digest, tags);
    if (++count % 32 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  // Should the power fail, a manifest must not come back whose blobs are gone.
  for (const repository of new Set(manifests.map((each) => each.repository)))
    await repositories.sync(repository);
  return count;
}
