import { type Digest } from "../digest.ts";
import { type BlobStore } from "./blob-store.ts";
import { type RepositoryStore } from "./repository-store.ts";

/** Files handled between two looks at what else there is to do. */
const batch = 32;

type Uses = Map<string, { bytes: number; digests: Set<Digest> }>;

/**
 * How many bytes of content the repositories of each namespace refer to. What several of its repositories have counts
 * once; what several namespaces have counts for each.
 */
export class NamespaceUses {
  #uses: Uses = new Map();
  #counting: Uses | undefined;

  of(namespace: string): number {
    return this.#uses.get(namespace)?.bytes ?? 0;
  }

  /** To be called when a repository refers to content. */
  add(repository: string, digest: Digest, size: number): void {
    for (const uses of [this.#uses, this.#counting])
      if (uses) addTo(uses, namespaceOf(repository), digest, size);
  }

  /** Nothing is left of what the namespace had. */
  forget(namespace: string): void {
    this.#uses.delete(namespace);
    this.#counting?.delete(namespace);
  }

  /** Counts again, while writes continue. */
  async count(repositories: RepositoryStore, blobs: BlobStore): Promise<void> {
    const uses = (this.#counting = new Map() as Uses);
    let count = 0;
    for (const repository of repositories.list())
      for (const digest of [
        ...repositories.blobs(repository),
        ...repositories.manifests(repository),
      ]) {
        addTo(uses, namespaceOf(repository), digest, blobs.sizeOf(digest) ?? 0);
        if (++count % batch === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    this.#uses = uses;
    this.#counting = undefined;
  }
}

function addTo(all: Uses, namespace: string, digest: Digest, size: number): void {
  const uses = all.get(namespace) ?? { bytes: 0, digests: new Set() };
  all.set(namespace, uses);
  if (uses.digests.has(digest)) return;
  uses.digests.add(digest);
  uses.bytes += size;
}

/** The part of a repository's name that says whose it is. */
export function namespaceOf(repository: string): string {
  return repository.split("/", 1)[0] ?? "";
}
