import { type ImageReason, names, platformRepositories, type RepositoryKind } from "@spry/function";
import { type Digest } from "../digest.ts";
import { isIndex } from "../manifest.ts";
import { type Stores } from "./exchange.ts";

/** What is in use outside of the registry, as a caller that knows the cluster reports it. */
export interface ImagesInUse {
  /** `<repository>@<digest>` and `<repository>:<tag>` of everything that may be started or built from. */
  references: readonly string[];
  /** The repositories of all Functions that there are. */
  functions: readonly string[];
}

export interface RetentionPolicy {
  /** Images of each Function that are kept in addition to those in use. Default 3. */
  previousImages: number;
  /** Dependency layers that no build has asked for in so long go. Default 30 days. */
  cacheMaxAgeMs: number;
  /**
   * What was pushed or requested within this time stays: a push may be under way, or the cluster may not know of it
   * yet. Default 30 minutes.
   */
  graceMs: number;
}

export const defaultRetention: RetentionPolicy = {
  previousImages: 3,
  cacheMaxAgeMs: 30 * 24 * 3_600_000,
  graceMs: 30 * 60_000,
};

/** A manifest that may go: at once, or (`spare`) only when room is needed. */
export interface Removable {
  repository: string;
  digest: Digest;
  tags: string[];
  usedAt: number;
  spare: boolean;
}

/** A manifest of a repository, and why it stays; without a reason, the next cleaning removes it. */
export interface Judged {
  digest: Digest;
  tags: string[];
  /** When it was last pushed or asked for, in milliseconds since the epoch. */
  usedAt: number;
  /** What it is about: a signature or a bill of materials stays as long as its image. */
  subject: Digest | undefined;
  reason: ImageReason | undefined;
}

/**
 * What of a repository may go. Only repositories of Spry's own naming are looked at: `<namespace>/<function>`
 * with build keys as tags, `spry/…` with what builds start from, `<namespace>/dependencies.cache/…` with dependency
 * layers. What users have pushed is theirs.
 */
export function removableManifests(
  stores: Stores,
  repository: string,
  inUse: ImagesInUse,
  policy: RetentionPolicy,
  now: number,
): Removable[] {
  return judgedManifests(stores, repository, inUse, policy, now)
    .filter(({ reason }) => reason === undefined || spareReasons.has(reason))
    .map(({ digest, tags, usedAt, reason }) => ({
      repository,
      digest,
      tags,
      usedAt,
      spare: reason !== undefined,
    }));
}

const spareReasons = new Set<ImageReason>(["previous", "cached"]);

/** All manifests of a repository, each with why it stays. */
export function judgedManifests(
  stores: Stores,
  repository: string,
  inUse: ImagesInUse,
  policy: RetentionPolicy,
  now: number,
): Judged[] {
  const kind = kindOf(repository);
  const entries = entriesOf(stores, repository);
  const asForeign = () => entries.map((entry) => ({ ...entry, reason: "foreign" as const }));
  if (kind === "foreign") return asForeign();
  const isOurs = (tag: string) =>
    buildKeyPattern.test(tag) || sourcePattern.test(tag) || subjectOfTag(tag) !== undefined;
  const isFunction = inUse.functions.includes(repository);
  // Of that name there is no Function, and its tags are not a builder's: a user's own image.
  const isForeign = kind === "function" && !isFunction;
  if (isForeign && !entries.every(({ tags }) => tags.every(isOurs))) return asForeign();
  const references = new Set(inUse.references);
  const kept = new Map<Digest, ImageReason>();
  const spare = new Map<Digest, ImageReason>();
  for (const { digest, tags, usedAt } of entries) {
    const foreign = kind === "function" && !tags.every(isOurs);
    if (isReferred(digest, tags)) kept.set(digest, "used");
    else if (foreign) kept.set(digest, "foreign");
    else if (usedAt >= now - policy.graceMs) kept.set(digest, "recent");
    else if (kind === "cache" && usedAt >= now - policy.cacheMaxAgeMs) spare.set(digest, "cached");
  }
  if (kind === "function" && isFunction) {
    const images = entries.filter(({ digest, subject }) => !subject && !isReferred(digest));
    const isSource = ({ tags }: Entry) => tags.some((tag) => sourcePattern.test(tag));
    // Of sources as many as of images: neither takes the other's place.
    for (const each of [images.filter(isSource), images.filter((one) => !isSource(one))]) {
      const newest = each.toSorted((a, b) => b.usedAt - a.usedAt).slice(0, policy.previousImages);
      for (const { digest } of newest) if (!kept.has(digest)) spare.set(digest, "previous");
    }
  }
  follow(stores, entries, kept);
  follow(stores, entries, spare);
  return entries.map((entry) => ({
    ...entry,
    reason: kept.get(entry.digest) ?? spare.get(entry.digest),
  }));

  function isReferred(digest: Digest, tags: string[] = []): boolean {
    return (
      references.has(`${repository}@${digest}`) ||
      tags.some((tag) => references.has(`${repository}:${tag}`))
    );
  }
}

type Entry = Omit<Judged, "reason">;

/** As the Function Controller makes them: the tag of a Function's image says what it was built from. */
const buildKeyPattern = /^[0-9a-f]{64}$/;
/** As `spry deploy` makes them (`source-image.ts`). */
const sourcePattern = /^source-[0-9a-f]{64}$/;

/**
 * By the tag that clients give where a registry does not know of referrers (OCI distribution specification, "Referrers Tag
 * Schema"), and signing tools anywhere (`sha256-<hex>.sig`): what is about an image, and goes with it.
 */
function subjectOfTag(tag: string): Digest | undefined {
  const hex = /^sha256-([0-9a-f]{64})(?:\.\w{1,16})?$/.exec(tag)?.[1];
  return hex === undefined ? undefined : `sha256:${hex}`;
}

export function kindOf(repository: string): RepositoryKind {
  const [first = "", , ...rest] = repository.split("/");
  if (first === platformRepositories) return "system";
  if (repository.startsWith(`${names.dependencyCaches(first)}/`)) return "cache";
  // Those of one part are a Function's of earlier versions that was gone when the others were moved.
  return rest.length > 0 ? "foreign" : "function";
}

function entriesOf({ repositories }: Stores, repository: string): Entry[] {
  const tagsOf = new Map<Digest, string[]>();
  for (const tag of repositories.tags(repository)) {
    const digest = repositories.tag(repository, tag);
    if (digest) tagsOf.set(digest, [...(tagsOf.get(digest) ?? []), tag]);
  }
  return repositories.manifests(repository).map((digest) => ({
    digest,
    tags: tagsOf.get(digest) ?? [],
    usedAt: repositories.manifestUsedAt(repository, digest),
    subject:
      repositories.manifest(repository, digest)?.subject ??
      tagsOf.get(digest)?.map(subjectOfTag).find(Boolean),
  }));
}

/** What stays takes along the entries of its index, and whatever is about it. */
function follow({ blobs }: Stores, entries: Entry[], kept: Map<Digest, ImageReason>): void {
  const present = new Set(entries.map(({ digest }) => digest));
  const add = (digest: Digest, reason: ImageReason) => {
    if (!kept.has(digest)) kept.set(digest, reason);
  };
  // A map that grows while it is walked is walked to its new end.
  for (const [digest, reason] of kept) {
    const manifest = present.has(digest) ? blobs.readManifest(digest) : undefined;
    if (manifest && isIndex(manifest))
      for (const entry of manifest.manifests) add(entry.digest, reason);
    for (const { digest: about, subject } of entries) if (subject === digest) add(about, reason);
  }
}
