import { type UnknownObject } from "@spry/kube";
import { builtin, type BuiltinResource, type Schema } from "../schema/schema.ts";
import { type ConversionWebhook } from "./webhook-client.ts";
import { conversions } from "./builtin-conversions.ts";
import { type CustomVersion, type PrinterColumn, type ScalePaths } from "./custom-version.ts";
import { groupVersionOf, type ResourceType, type Strategy } from "./resource-type.ts";

/** Every resource that is served: the built-in ones, and those of CustomResourceDefinitions. */
export class Catalog {
  readonly #types = new Map<string, ResourceType>();
  /** Kinds that are responses and never stored: described like the others, but not found by code that stores. */
  readonly reviews: ResourceType[];
  /** Changes whenever the set of resources does; documents made from it are kept until then. */
  generation = 0;

  /** `strategies`: by kind, what built-in kinds do beyond being stored. */
  constructor(strategies: Readonly<Record<string, Strategy>>) {
    const typesOf = ({ group, version, resources }: (typeof builtin.groupVersions)[number]) =>
      resources.map((resource) =>
        builtinType(group, version, resource, strategies[resource.kind] ?? {}),
      );
    this.reviews = builtin.reviews.flatMap(typesOf);
    for (const type of builtin.groupVersions.flatMap(typesOf)) this.#add(type);
  }

  find(group: string, version: string, plural: string): ResourceType | undefined {
    return this.#types.get(`${group}/${version}/${plural}`);
  }

  all(): ResourceType[] {
    return [...this.#types.values()];
  }

  /** Some version of a stored collection: the one to treat its objects by. */
  ofCollection(collection: string): ResourceType | undefined {
    return this.all().find(
      (type) => type.collection === collection && groupVersionOf(type) === type.storageApiVersion,
    );
  }

  /** Serves (or no longer serves) what a CustomResourceDefinition says. */
  setDefinition(name: string, crd: UnknownObject | undefined): void {
    for (const [key, type] of this.#types) {
      if (type.custom?.crdName === name) this.#types.delete(key);
    }
    if (crd) for (const type of customTypes(crd)) this.#add(type);
    this.generation++;
  }

  /** Whether anything of the group and version is served. */
  serves(group: string, version: string): boolean {
    const prefix = `${group}/${version}/`;
    return [...this.#types.keys()].some((key) => key.startsWith(prefix));
  }

  #add(type: ResourceType): void {
    this.#types.set(`${type.group}/${type.version}/${type.plural}`, type);
  }
}

function builtinType(
  group: string,
  version: string,
  resource: BuiltinResource,
  strategy: Strategy,
): ResourceType {
  const { plural, singular, kind, namespaced, status, scale, definition } = resource;
  const conversion = conversions[`${groupVersionOf({ group, version })} ${kind}`];
  return {
    group,
    version,
    kind,
    listKind: `${kind}List`,
    plural,
    singular,
    shortNames: resource.shortNames ?? [],
    categories: resource.categories ?? [],
    namespaced,
    collection: conversion?.collection ?? `${group}/${plural}`,
    storageApiVersion: conversion?.apiVersion ?? groupVersionOf({ group, version }),
    hasStatus: status,
    hasScale: scale,
    schema: builtin.definitions[definition] ?? {},
    strategy,
    ...(conversion && { convert: conversion }),
  };
}

/** `spec` of a CustomResourceDefinition, which validation has been through. */
export interface DefinitionSpec {
  group: string;
  scope: "Namespaced" | "Cluster";
  names: {
    plural: string;
    singular?: string;
    kind: string;
    listKind?: string;
    shortNames?: string[];
    categories?: string[];
  };
  preserveUnknownFields?: boolean;
  conversion?: { strategy: string; webhook?: ConversionWebhook };
  versions: {
    name: string;
    served: boolean;
    storage: boolean;
    deprecated?: boolean;
    deprecationWarning?: string;
    schema?: { openAPIV3Schema?: Schema };
    subresources?: { status?: object; scale?: ScalePaths };
    additionalPrinterColumns?: PrinterColumn[];
    selectableFields?: { jsonPath: string }[];
  }[];
}

const ageColumn: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
};

function customTypes(crd: UnknownObject): ResourceType[] {
  const spec = crd.spec as DefinitionSpec;
  const { names, group } = spec;
  const storage = spec.versions.find((version) => version.storage)?.name ?? "";
  return spec.versions
    .filter((version) => version.served)
    .map((version): ResourceType => {
      const apiVersion = `${group}/${version.name}`;
      const schema = version.schema?.openAPIV3Schema ?? {};
      const custom: CustomVersion = {
        crdName: crd.metadata.name ?? "",
        crdRevision: `${crd.metadata.uid}/${crd.metadata.generation}`,
        openApiSchema: schema,
        storageSchema:
          spec.versions.find((each) => each.storage)?.schema?.openAPIV3Schema ?? schema,
        columns: version.additionalPrinterColumns ?? [ageColumn],
        scale: version.subresources?.scale,
        selectableFields: (version.selectableFields ?? []).map(({ jsonPath }) => jsonPath.slice(1)),
        deprecationWarning: version.deprecated
          ? (version.deprecationWarning ?? `${apiVersion} ${names.kind} is deprecated`)
          : undefined,
        preserveUnknownFields: spec.preserveUnknownFields === true,
      };
      // Objects may still be stored in a version that was the storage version before.
      const differs = spec.versions.length > 1;
      const webhook = spec.conversion?.strategy === "Webhook" ? spec.conversion.webhook : undefined;
      const setVersion = (name: string) => (object: UnknownObject) => {
        object.apiVersion = `${group}/${name}`;
      };
      return {
        group,
        version: version.name,
        kind: names.kind,
        listKind: names.listKind ?? `${names.kind}List`,
        plural: names.plural,
        singular: names.singular ?? names.kind.toLowerCase(),
        shortNames: names.shortNames ?? [],
        categories: names.categories ?? [],
        namespaced: spec.scope === "Namespaced",
        collection: `${group}/${names.plural}`,
        storageApiVersion: `${group}/${storage}`,
        hasStatus: version.subresources?.status !== undefined,
        hasScale: version.subresources?.scale !== undefined,
        schema: withObjectMeta(schema),
        strategy: { generation: true, selectableFields: custom.selectableFields },
        custom,
        ...(webhook && { conversion: webhook }),
        ...(differs &&
          !webhook && {
            convert: { toStorage: setVersion(storage), fromStorage: setVersion(version.name) },
          }),
      };
    });
}

/** What a CustomResourceDefinition leaves to the server: the type and object metadata. */
function withObjectMeta(schema: Schema): Schema {
  return {
    ...schema,
    type: "object",
    properties: {
      ...schema.properties,
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { $ref: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" },
    },
  };
}
