/** One resource of a server's `APIResourceList`. */
export interface ApiResource {
  name: string;
  kind: string;
  namespaced: boolean;
  verbs: string[];
  singularName?: string;
  group?: string;
  version?: string;
  shortNames?: string[];
  categories?: string[];
}

/** A group and version that another server serves, as discovery lists it. */
export interface AggregatedVersion {
  group: string;
  version: string;
  versionPriority: number;
  /** Of its latest answer; undefined while it does not answer. */
  resources: ApiResource[] | undefined;
  /** Changes with its OpenAPI document (version 3); undefined when it has none. */
  openApiHash: string | undefined;
}

const maxResources = 2000;

/** Reads an `APIResourceList`; throws when it is none. What a resource lacks is filled in. */
export function resourcesOf(text: string): ApiResource[] {
  const list = JSON.parse(text) as { kind?: string; resources?: Partial<ApiResource>[] | null };
  if (list.kind !== "APIResourceList") throw new Error(`it is a ${list.kind}`);
  const named = (list.resources ?? []).filter((each) => typeof each.name === "string");
  return named.slice(0, maxResources).map((each) => ({
    ...each,
    name: each.name ?? "",
    kind: each.kind ?? "",
    namespaced: each.namespaced === true,
    verbs: each.verbs ?? [],
  }));
}

/** The same in the form of `apidiscovery.k8s.io/v2`, in which subresources are part of their resources. */
export function discoveredVersion({ group, version, resources }: AggregatedVersion): object {
  const all = resources ?? [];
  const kindOf = (each: ApiResource) => ({
    group: each.group || group,
    version: each.version || version,
    kind: each.kind,
  });
  const items = all
    .filter(({ name }) => !name.includes("/"))
    .map((each) => {
      const prefix = `${each.name}/`;
      const subresources = all
        .filter(({ name }) => name.startsWith(prefix))
        .map((sub) => ({
          subresource: sub.name.slice(prefix.length),
          responseKind: kindOf(sub),
          verbs: sub.verbs,
        }));
      return {
        resource: each.name,
        responseKind: kindOf(each),
        scope: each.namespaced ? "Namespaced" : "Cluster",
        singularResource: each.singularName ?? "",
        verbs: each.verbs,
        ...(each.shortNames?.length && { shortNames: each.shortNames }),
        ...(each.categories?.length && { categories: each.categories }),
        ...(subresources.length > 0 && { subresources }),
      };
    });
  return { version, freshness: resources ? "Current" : "Stale", resources: items };
}
