import { type KubeClient, type Resource, StatusError } from "@spry/kube";

/** A kind as discovery describes it. */
export interface ApiResource extends Resource {
  verbs: readonly string[];
}

interface ApiResourceList {
  resources?: { name: string; kind: string; namespaced: boolean; verbs: string[] }[];
}

interface ApiGroupList {
  groups?: {
    name: string;
    preferredVersion?: { version: string };
    versions: { version: string }[];
  }[];
}

/** The kinds that the server has at present, each in its group's preferred version; without those of servers that do not answer. */
export async function discoverResources(
  client: KubeClient,
  signal?: AbortSignal,
): Promise<ApiResource[]> {
  const get = async <T>(path: string) =>
    (await (await client.raw("GET", path, { signal })).json()) as T;
  const { groups = [] } = await get<ApiGroupList>("/apis");
  const versions = [{ group: "", version: "v1", path: "/api/v1" }];
  for (const { name, preferredVersion, versions: all } of groups) {
    const version = preferredVersion?.version ?? all[0]?.version;
    if (version) versions.push({ group: name, version, path: `/apis/${name}/${version}` });
  }
  const found: ApiResource[] = [];
  for (const { group, version, path } of versions) {
    // Another server's, which may be down; that must hold up nothing else.
    const list = await get<ApiResourceList>(path).catch((error: unknown): ApiResourceList => {
      if (group !== "" && error instanceof StatusError && error.code >= 500) return {};
      throw error;
    });
    for (const { name, kind, namespaced, verbs } of list.resources ?? [])
      if (!name.includes("/"))
        found.push({ group, version, kind, plural: name, namespaced, verbs });
  }
  return found;
}

/** One kind, by what an object says of it; undefined when the server does not have it. */
export async function discoverKind(
  client: KubeClient,
  apiVersion: string,
  kind: string,
  signal?: AbortSignal,
): Promise<ApiResource | undefined> {
  const slash = apiVersion.indexOf("/");
  const [group, version] =
    slash < 0 ? ["", apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)];
  const path = group
    ? `/apis/${encodeURIComponent(group)}/${encodeURIComponent(version)}`
    : `/api/${encodeURIComponent(version)}`;
  const response = await client.raw("GET", path, { signal });
  const list = (await response.json()) as ApiResourceList;
  const found = list.resources?.find((each) => each.kind === kind && !each.name.includes("/"));
  if (!found) return undefined;
  const { name, namespaced, verbs } = found;
  return { group, version, kind, plural: name, namespaced, verbs };
}

/** The kind that an owner or scale target means. Versions of one group are views of the same objects. */
export function findKind<T extends Resource>(
  known: readonly T[],
  apiVersion: string,
  kind: string,
): T | undefined {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return known.find((each) => each.group === group && each.kind === kind);
}
