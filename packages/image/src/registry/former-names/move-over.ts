/**
 * Registries of earlier versions had repositories called `<namespace>-<function>` and one cache of dependency layers for all,
 * `spry-cache/<runtime>`. This gives each namespace its own, once.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { names } from "@spry/function";
import { type Digest, isDigest } from "../../digest.ts";
import { isIndex } from "../../manifest.ts";
import { writeDurably } from "../durable-file.ts";
import { type Stores } from "../exchange.ts";
import { requirementsOf } from "../manifest-check.ts";
import { type Aliases, digestOfReference, repositoryOf } from "./aliases.ts";

/** Who uses what under the former names. */
export interface FormerUses {
  functions: readonly { namespace: string; name: string }[];
  /** `<former repository>@<digest>` that objects of the namespace refer to. */
  references: readonly { namespace: string; reference: string }[];
}

const formerCaches = "spry-cache";
const currentLayout = "2";

/**
 * Moves what is there; `uses` is asked only when there is something. Nothing may be served meanwhile. May be killed at any point, and
 * then goes on with the next call. Resolves to the number of repositories that were moved.
 */
export async function moveOver(
  dir: string,
  stores: Stores,
  aliases: Aliases,
  uses: () => Promise<FormerUses>,
): Promise<number> {
  const marker = join(dir, "layout");
  if (existsSync(marker)) return 0;
  const { repositories, blobs } = stores;
  const all = repositories.list();
  let moved = 0;
  if (all.length > 0) {
    const { functions, references } = await uses();
    const owners = new Map<string, { namespace: string; name: string }[]>();
    for (const each of functions) {
      const former = `${each.namespace}-${each.name}`;
      owners.set(former, [...(owners.get(former) ?? []), each]);
    }
    const todayOf = (former: string) =>
      (owners.get(former) ?? []).map(({ namespace, name }) => names.repository(namespace, name));
    // First: whatever happens on the way, the former names lead there.
    const formers = [...owners.keys()].filter((former) => all.includes(former));
    await aliases.add(new Map(formers.map((former) => [former, todayOf(former)])));
    for (const repository of all)
      // Every user of the one login of then could have put these there.
      if (repository.includes("/dependencies.cache/")) await repositories.removeBelow(repository);
    for (const former of formers) {
      const [first, ...others] = owners.get(former) ?? [];
      if (first && others.length === 0)
        repositories.move(former, names.repository(first.namespace, first.name));
      else await divide(stores, former, owners.get(former) ?? [], references);
      moved++;
    }
    await keepDependencies(stores, all, functions);
    await repositories.removeBelow(formerCaches);
  }
  await writeDurably(marker, currentLayout, blobs.scratch);
  return moved;
}

/** A repository that was several Functions': each gets what objects of its namespace refer to. */
async function divide(
  stores: Stores,
  former: string,
  owners: readonly { namespace: string; name: string }[],
  references: FormerUses["references"],
): Promise<void> {
  for (const { namespace, name } of owners) {
    const to = names.repository(namespace, name);
    for (const use of references) {
      if (use.namespace !== namespace || repositoryOf(use.reference) !== former) continue;
      const digest = digestOfReference(use.reference);
      if (digest && isDigest(digest)) await copyImage(stores, former, to, digest);
    }
  }
  stores.repositories.remove(former);
}

async function copyImage(
  stores: Stores,
  from: string,
  to: string,
  digest: Digest,
  seen: Set<Digest> = new Set(),
): Promise<void> {
  const { repositories, blobs } = stores;
  const record = repositories.manifest(from, digest);
  const manifest = record && blobs.readManifest(digest);
  if (!record || !manifest || seen.has(digest)) return;
  seen.add(digest);
  for (const blob of requirementsOf(manifest).blobs)
    // A manifest can name what its sender could not read: earlier versions did not check layers with `urls`.
    if (repositories.hasBlob(from, blob.digest)) repositories.addBlob(to, blob.digest);
  if (isIndex(manifest))
    for (const entry of manifest.manifests) await copyImage(stores, from, to, entry.digest, seen);
  await repositories.addManifest(to, digest, record);
  for (const referrer of repositories.referrers(from, digest)) {
    await copyImage(stores, from, to, referrer.digest, seen);
    await repositories.addReferrer(to, digest, referrer);
  }
}

/** Dependency layers that images of a namespace already have stay at hand for its builds; all others are made again. */
async function keepDependencies(
  stores: Stores,
  all: readonly string[],
  functions: FormerUses["functions"],
): Promise<void> {
  const { repositories, blobs } = stores;
  const users = new Map<Digest, Set<string>>();
  for (const { namespace, name } of functions)
    for (const layer of layersIn(stores, names.repository(namespace, name)))
      users.set(layer, (users.get(layer) ?? new Set()).add(namespace));
  for (const former of all.filter((each) => each.startsWith(`${formerCaches}/`))) {
    for (const tag of repositories.tags(former)) {
      const digest = repositories.tag(former, tag);
      const manifest = digest && blobs.readManifest(digest);
      const layer = manifest && !isIndex(manifest) ? manifest.layers[0]?.digest : undefined;
      if (!digest || !layer) continue;
      for (const namespace of users.get(layer) ?? []) {
        const to = `${names.dependencyCaches(namespace)}/${former.slice(formerCaches.length + 1)}`;
        await copyImage(stores, former, to, digest);
        await repositories.setTag(to, tag, digest);
      }
    }
  }
}

function layersIn(stores: Stores, repository: string): Digest[] {
  const { repositories, blobs } = stores;
  return repositories.manifests(repository).flatMap((digest) => {
    const manifest = blobs.readManifest(digest);
    return manifest && !isIndex(manifest) ? manifest.layers.map((layer) => layer.digest) : [];
  });
}
