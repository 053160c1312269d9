import { type Digest, hexOf } from "../digest.ts";
import { type Descriptor, manifestSizeLimit, mediaTypes } from "../manifest.ts";
import { allows } from "./access/grants.ts";
import { allowOnly, type Exchange, memoryOf, sendJson } from "./exchange.ts";
import { RegistryFailure } from "./registry-failure.ts";

/** Of a list of referrers, without what is around it. */
const listSizeLimit = manifestSizeLimit - 1024;

/** GET of `/v2/<name>/tags/list?n=&last=`. */
export function listTags(exchange: Exchange, { repository }: { repository: string }): void {
  const { request, stores } = exchange;
  allowOnly(request.method, "GET", "HEAD");
  if (!stores.repositories.exists(repository))
    throw new RegistryFailure("NAME_UNKNOWN", `no repository ${repository}`);
  const tags = pageOf(
    exchange,
    stores.repositories.tags(repository),
    `/v2/${repository}/tags/list`,
  );
  sendJson(exchange, { name: repository, tags });
}

/** GET of `/v2/_catalog?n=&last=`: no part of the specification, but what tools look for. Names what may be pulled. */
export function listRepositories(exchange: Exchange): void {
  const { request, stores, grant } = exchange;
  allowOnly(request.method, "GET", "HEAD");
  const readable = stores.repositories.list().filter((each) => allows(grant, "pull", each));
  const repositories = pageOf(exchange, readable, "/v2/_catalog");
  sendJson(exchange, { repositories });
}

/**
 * GET of `/v2/<name>/referrers/<digest>?artifactType=`: an index, empty when nothing refers to it. One that would be larger than
 * a manifest may be is sent in parts ("Listing Referrers": `Link`).
 */
export function listReferrers(
  exchange: Exchange,
  { repository, digest }: { repository: string; digest: Digest },
): void {
  const { request, response, query, stores } = exchange;
  allowOnly(request.method, "GET", "HEAD");
  const artifactType = query.get("artifactType");
  const manifests: Descriptor[] = [];
  let size = 0;
  for (const referrer of stores.repositories.referrers(
    repository,
    digest,
    query.get("last") ?? "",
  )) {
    if (artifactType !== null && referrer.artifactType !== artifactType) continue;
    size += JSON.stringify(referrer).length + 1;
    const end = manifests.at(-1);
    if (end && size > listSizeLimit) {
      const filter =
        artifactType === null ? "" : `artifactType=${encodeURIComponent(artifactType)}&`;
      const next = `/v2/${repository}/referrers/${digest}?${filter}last=${hexOf(end.digest)}`;
      response.setHeader("link", `<${next}>; rel="next"`);
      break;
    }
    manifests.push(referrer);
  }
  memoryOf(exchange)(Math.min(size, listSizeLimit));
  if (artifactType !== null) response.setHeader("oci-filters-applied", "artifactType");
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests };
  sendJson(exchange, index, { type: mediaTypes.index });
}

/** The names after `last`, `n` at most, with a `Link` to the rest. */
function pageOf({ query, response }: Exchange, names: string[], path: string): string[] {
  const last = query.get("last");
  const rest = last === null ? names : names.filter((name) => name > last);
  const n = query.get("n");
  if (n === null) return rest;
  if (!/^\d{1,9}$/.test(n))
    throw new RegistryFailure("UNSUPPORTED", "n must be a whole number", { status: 400 });
  const page = rest.slice(0, Number(n));
  const end = page.at(-1);
  if (end !== undefined && page.length < rest.length)
    response.setHeader("link", `<${path}?n=${n}&last=${encodeURIComponent(end)}>; rel="next"`);
  return page;
}
