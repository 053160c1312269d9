import { type RegistryUsage, type RepositoryUsage } from "@spry/function";
import { type Clock } from "../clock.ts";
import { type Digest } from "../digest.ts";
import { type Logger } from "../log.ts";
import { isIndex } from "../manifest.ts";
import { type Stores } from "./exchange.ts";
import {
  type ImagesInUse,
  type Judged,
  judgedManifests,
  kindOf,
  type RetentionPolicy,
} from "./retention.ts";

const maxImages = 20;

/** Reads every repository, while requests continue. `inUse` is what the cluster refers to, as for a cleaning. */
export async function usageOf(
  stores: Stores,
  given: ImagesInUse,
  policy: RetentionPolicy,
  clock: Clock,
  log: Logger,
): Promise<RegistryUsage> {
  const inUse = { ...given, references: stores.aliases.withToday(given.references) };
  const repositories: RepositoryUsage[] = [];
  for (const name of stores.repositories.list()) {
    try {
      const judged = judgedManifests(stores, name, inUse, policy, clock.now());
      repositories.push(repositoryUsage(stores, name, judged));
    } catch (error) {
      log.error(
        { repository: name, error },
        "repository could not be read: its usage is not known",
      );
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  repositories.sort((a, b) => b.bytes - a.bytes);
  const { stored, limit: quota } = stores.quota;
  const { previousImages, cacheMaxAgeMs } = policy;
  return { stored, quota, previousImages, cacheMaxAgeMs, repositories };
}

function repositoryUsage(
  { blobs, repositories }: Stores,
  name: string,
  judged: Judged[],
): RepositoryUsage {
  const content = new Set([...repositories.blobs(name), ...judged.map(({ digest }) => digest)]);
  const parts = new Set<Digest>();
  const sizes = new Map<Digest, number>();
  for (const { digest } of judged) {
    const manifest = blobs.readManifest(digest);
    if (!manifest) continue;
    const below = isIndex(manifest) ? manifest.manifests : [manifest.config, ...manifest.layers];
    if (isIndex(manifest)) for (const part of below) parts.add(part.digest);
    sizes.set(
      digest,
      below.reduce((sum, { size }) => sum + size, 0),
    );
  }
  const images = judged
    .filter(({ digest, subject }) => !subject && !parts.has(digest))
    .sort((a, b) => b.usedAt - a.usedAt);
  return {
    name,
    kind: kindOf(name),
    bytes: [...content].reduce((sum, digest) => sum + (blobs.sizeOf(digest) ?? 0), 0),
    images: images.slice(0, maxImages).map(({ digest, tags, usedAt, reason = null }) => ({
      digest,
      tags,
      bytes: sizes.get(digest) ?? 0,
      usedAt: new Date(usedAt).toISOString(),
      reason,
    })),
    imageCount: images.length,
  };
}
