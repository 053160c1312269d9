/** What the registry keeps for which Function, and why: by its own report, or as far as the API server knows. */
import {
  type FunctionRevision,
  type ImageReason,
  labels,
  type RegistryUsage,
  type RepositoryUsage,
} from "@spry/function/browser";

/** A repository as it is shown. */
export interface ShownRepository {
  name: string;
  /** Whose images it has; undefined where they are not a Function's. */
  owner: { namespace: string; name: string } | undefined;
  what: string;
  /** Null where only the API server was asked. */
  bytes: number | null;
  images: ShownImage[];
  /** Older images that are not listed. */
  more: number;
}

export interface ShownImage {
  digest: string;
  bytes: number | null;
  usedAt: string | undefined;
  why: string;
  /** The next cleaning removes it. */
  isGoing: boolean;
}

const kinds: Record<RepositoryUsage["kind"], string> = {
  function: "Function",
  system: "what builds start from",
  cache: "packages of builds",
  foreign: "pushed by users",
};

/** By the registry's own report; versions are those of the history. */
export function reportedRepositories(
  { repositories, previousImages, cacheMaxAgeMs }: RegistryUsage,
  revisions: readonly FunctionRevision[],
): ShownRepository[] {
  const versions = versionsByImage(revisions);
  const reasons: Record<ImageReason, string> = {
    used: "in use",
    recent: "new: kept for half an hour",
    foreign: "not made by Spry: never removed",
    previous: `one of the last ${previousImages}: kept while there is room`,
    cached: `saves the next build its download: kept for ${Math.round(cacheMaxAgeMs / 86_400_000)} days`,
  };
  const shown = repositories.map(({ name, kind, bytes, images, imageCount }) => ({
    name,
    owner: kind === "function" ? ownerOf(name) : undefined,
    what: kinds[kind],
    bytes,
    images: images.map(({ digest, bytes, usedAt, reason }) => {
      const found = versions.get(`${name}@${digest}`);
      const why =
        reason === null ? "not needed: removed by the next cleaning" : (reasons[reason] ?? "");
      return { digest, bytes, usedAt, why: found ?? why, isGoing: reason === null };
    }),
    more: imageCount - images.length,
  }));
  // Those of Functions first: these are what users can do something about.
  return shown.sort((one, other) => Number(!one.owner) - Number(!other.owner));
}

/** Only what histories refer to: a registry that does not report has more, and knows the sizes. */
export function knownRepositories(revisions: readonly FunctionRevision[]): ShownRepository[] {
  const versions = versionsByImage(revisions);
  const found = new Map<string, ShownRepository>();
  for (const [reference, why] of versions) {
    const [name = "", digest = ""] = reference.split("@");
    const repository = found.get(name) ?? {
      name,
      owner: ownerOf(name),
      what: kinds.function,
      bytes: null,
      images: [],
      more: 0,
    };
    found.set(name, repository);
    repository.images.push({ digest, bytes: null, usedAt: undefined, why, isGoing: false });
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** `version 3` of the history, by `<repository>@<digest>`; the newest first. */
function versionsByImage(revisions: readonly FunctionRevision[]): Map<string, string> {
  const found = new Map<string, number[]>();
  const newest = [...revisions].sort((a, b) => b.revision - a.revision);
  for (const { metadata, data, revision } of newest) {
    const digest = data.image?.split("@")[1];
    const name = metadata.labels?.[labels.functionName];
    if (digest === undefined || name === undefined) continue;
    const reference = `${metadata.namespace}/${name}@${digest}`;
    found.set(reference, [...(found.get(reference) ?? []), revision]);
  }
  return new Map([...found].map(([reference, all]) => [reference, versionsText(all)]));
}

const versionsText = (all: number[]): string =>
  `${all.length === 1 ? "version" : "versions"} ${all.join(", ")} in the history`;

function ownerOf(repository: string): ShownRepository["owner"] {
  const [namespace = "", name = ""] = repository.split("/");
  return { namespace, name };
}

/** `53.1 MiB`. */
export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, at] = [bytes, 0];
  for (; value >= 1024 && at < units.length - 1; at++) value /= 1024;
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
}
