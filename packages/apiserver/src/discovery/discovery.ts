import { type AggregatedVersion, discoveredVersion } from "../aggregation/aggregated-version.ts";
import { type Catalog } from "../resources/catalog.ts";
import { metricsGroup, metricsResources } from "../metrics/metrics.ts";
import { reviews } from "../handlers/reviews.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { subresourcesOf } from "./subresources.ts";
import { versionsOf } from "./version-order.ts";

const allVerbs = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
];
/** In the order in which a cluster lists those of custom resources. */
const customVerbs = [
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "create",
  "update",
  "watch",
];

/** The documents by which clients learn what is served; they change only when the catalog does. */
export class Discovery {
  readonly #catalog: Catalog;
  readonly #aggregated: () => AggregatedVersion[];
  #generation = -1;
  #documents = new Map<string, string>();

  /** `aggregated`: what other servers serve; the catalog's generation changes with it. */
  constructor(catalog: Catalog, aggregated: () => AggregatedVersion[]) {
    this.#catalog = catalog;
    this.#aggregated = aggregated;
  }

  /** The document of `/api`, `/apis`, `/apis/<group>` or a group-version; undefined when there is none. */
  document(path: string, aggregated: boolean): string | undefined {
    if (this.#generation !== this.#catalog.generation) {
      this.#documents.clear();
      this.#generation = this.#catalog.generation;
    }
    const key = `${aggregated} ${path}`;
    let text = this.#documents.get(key);
    if (text === undefined) {
      const document = this.#make(path, aggregated);
      if (!document) return undefined;
      text = JSON.stringify(document);
      this.#documents.set(key, text);
    }
    return text;
  }

  #make(path: string, aggregated: boolean): object | undefined {
    const [, root, group, version, ...rest] = path.split("/");
    if (rest.length > 0) return undefined;
    if (root === "api") {
      if (group === undefined) return aggregated ? this.#whole(true) : coreVersions;
      return version === undefined ? this.#resources("", group) : undefined;
    }
    if (group === undefined) return aggregated ? this.#whole(false) : this.#groups();
    if (version === undefined) {
      const found = this.#groups().groups.find((each) => each.name === group);
      return found && { kind: "APIGroup", apiVersion: "v1", ...found };
    }
    return this.#resources(group, version);
  }

  #versions(group: string): string[] {
    return versionsOf([
      ...this.#types(group),
      ...virtualResources.filter((each) => each.group === group),
      ...this.#aggregated().filter((each) => each.group === group),
    ]);
  }

  #types(group: string): ResourceType[] {
    return this.#catalog.all().filter((type) => type.group === group);
  }

  #groupNames(): string[] {
    const all = [...this.#catalog.all(), ...virtualResources, ...this.#aggregated()];
    const names = new Set(all.map((type) => type.group));
    return [...names].filter((name) => name !== "").sort();
  }

  #groups() {
    const groups = this.#groupNames().map((name) => {
      const versions = this.#versions(name).map((version) => ({
        groupVersion: `${name}/${version}`,
        version,
      }));
      return { name, versions, preferredVersion: versions[0] };
    });
    return { kind: "APIGroupList", apiVersion: "v1", groups };
  }

  #resources(group: string, version: string): object | undefined {
    const types = this.#types(group).filter((type) => type.version === version);
    const virtual = virtualResources.filter(
      (each) => each.group === group && each.version === version,
    );
    if (types.length + virtual.length === 0) return undefined;
    const stored = types.flatMap((type) => [
      {
        name: type.plural,
        singularName: type.singular,
        namespaced: type.namespaced,
        kind: type.kind,
        verbs: verbsOf(type),
        ...(type.shortNames.length > 0 && { shortNames: type.shortNames }),
        ...(type.categories.length > 0 && { categories: type.categories }),
      },
      ...subresourcesOf(type).map(({ name, verbs, kind, ...scope }) => ({
        name: `${type.plural}/${name}`,
        singularName: "",
        namespaced: type.namespaced,
        kind: kind ?? type.kind,
        ...scope,
        verbs,
      })),
    ]);
    const asked = virtual.map(({ plural, singular, kind, namespaced, verbs }) => ({
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
    }));
    const groupVersion = groupVersionOf({ group, version });
    const resources = [...stored, ...asked];
    if (!types.some(({ custom }) => custom)) resources.sort((a, b) => (a.name < b.name ? -1 : 1));
    // The oldest of these documents has no version.
    return {
      kind: "APIResourceList",
      ...(group !== "" && { apiVersion: "v1" }),
      groupVersion,
      resources,
    };
  }

  /** `apidiscovery.k8s.io/v2`: all in one document. */
  #whole(core: boolean): object {
    const items = (core ? [""] : this.#groupNames()).map((name) => {
      const types = this.#types(name);
      return {
        metadata: name === "" ? {} : { name },
        versions: this.#versions(name).map((version) => {
          const others = this.#aggregated().find(
            (each) => each.group === name && each.version === version,
          );
          if (others) return discoveredVersion(others);
          const resources = [
            ...types.filter((type) => type.version === version).map(aggregatedResource),
            ...virtualResources
              .filter((each) => each.group === name && each.version === version)
              .map(aggregatedVirtual),
          ].sort((a, b) => (a.resource < b.resource ? -1 : 1));
          return { version, freshness: "Current", resources };
        }),
      };
    });
    return {
      kind: "APIGroupDiscoveryList",
      apiVersion: "apidiscovery.k8s.io/v2",
      metadata: {},
      items,
    };
  }
}

const coreVersions = {
  kind: "APIVersions",
  versions: ["v1"],
  serverAddressByClientCIDRs: [],
};

/** What is answered without being stored. */
const virtualResources = [
  ...Object.entries(reviews).map(([path, { kind, namespaced = false }]) => {
    const [group = "", version = "", plural = ""] = path.split("/");
    const singular = kind.toLowerCase();
    return { group, version, plural, singular, kind, namespaced, verbs: ["create"] };
  }),
  ...metricsResources.map(({ plural, kind, namespaced }) => ({
    group: metricsGroup,
    version: "v1beta1",
    plural,
    singular: "",
    kind,
    namespaced,
    verbs: ["get", "list"],
  })),
];

function aggregatedVirtual({
  group,
  version,
  plural,
  singular,
  kind,
  namespaced,
  verbs,
}: (typeof virtualResources)[number]) {
  return {
    resource: plural,
    responseKind: { group, version, kind },
    scope: namespaced ? "Namespaced" : "Cluster",
    singularResource: singular,
    verbs,
  };
}

function aggregatedResource(type: ResourceType) {
  const { group, version, kind } = type;
  const subresources = subresourcesOf(type).map((each) => ({
    subresource: each.name,
    responseKind: {
      group: each.group ?? group,
      version: each.version ?? version,
      kind: each.kind ?? kind,
    },
    verbs: each.verbs,
  }));
  return {
    resource: type.plural,
    responseKind: { group, version, kind },
    scope: type.namespaced ? "Namespaced" : "Cluster",
    singularResource: type.singular,
    verbs: verbsOf(type),
    ...(type.shortNames.length > 0 && { shortNames: type.shortNames }),
    ...(type.categories.length > 0 && { categories: type.categories }),
    ...(subresources.length > 0 && { subresources }),
  };
}

function verbsOf({ custom }: ResourceType): string[] {
  return custom ? customVerbs : allVerbs;
}
