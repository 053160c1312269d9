import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { builtin, type Schema } from "../schema/schema.ts";

type Descriptions = Record<string, Record<string, string>>;
type Prefix = "#/definitions/" | "#/components/schemas/";

/** The prose of the built-in kinds: 100 kB that only `kubectl explain` and its like need. */
function descriptions(): Descriptions {
  const file = new URL("../generated/kube-descriptions.json.gz", import.meta.url);
  return JSON.parse(gunzipSync(readFileSync(file)).toString()) as Descriptions;
}

/** Schemas of the types and all that they refer to, by name. */
export function schemasOf(types: ResourceType[], prefix: Prefix): Record<string, unknown> {
  const prose = descriptions();
  const schemas: Record<string, unknown> = {};
  const add = (name: string): void => {
    const definition = builtin.definitions[name];
    if (schemas[name] || !definition) return;
    schemas[name] = described(definition, prose[name], prefix);
    for (const each of JSON.stringify(definition).matchAll(/"\$ref":"([^"]+)"/g))
      add(each[1] ?? "");
  };
  for (const type of types) {
    const name = definitionName(type);
    if (!type.custom) add(name);
    else {
      add("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
      const { group, version, kind } = type;
      schemas[name] = {
        ...(referenced(type.schema, prefix) as object),
        "x-kubernetes-group-version-kind": [{ group, version, kind }],
      };
    }
  }
  return schemas;
}

/** `com.example.v1.Widget` for example.com/v1; built-in kinds have names of their own. */
export function definitionName(type: ResourceType): string {
  const { group, version, kind, plural } = type;
  if (type.custom) return [...group.split(".").reverse(), version, kind].join(".");
  const found = [...builtin.groupVersions, ...builtin.reviews]
    .find((each) => each.group === group && each.version === version)
    ?.resources.find((each) => each.plural === plural);
  return found?.definition ?? "";
}

function described(
  definition: Schema,
  prose: Record<string, string> | undefined,
  prefix: Prefix,
): unknown {
  const properties = Object.entries(definition.properties ?? {}).map(([field, schema]) => {
    const description = prose?.[field];
    return [field, referenced({ ...schema, ...(description && { description }) }, prefix)];
  });
  return {
    ...(prose?.[""] && { description: prose[""] }),
    ...(referenced({ ...definition, properties: {} }, prefix) as object),
    ...(definition.properties && { properties: Object.fromEntries(properties) as object }),
  };
}

/** References as the document writes them; next to other keywords they are in an `allOf`. */
function referenced(schema: unknown, prefix: Prefix): unknown {
  if (Array.isArray(schema)) return schema.map((each) => referenced(each, prefix));
  if (typeof schema !== "object" || schema === null) return schema;
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "$ref" && typeof value === "string") {
      const reference = { $ref: prefix + value };
      if (Object.keys(schema).length === 1 || prefix === "#/definitions/")
        Object.assign(result, reference);
      else result.allOf = [reference];
    } else result[key] = referenced(value, prefix);
  }
  // Swagger 2 knows no alternatives.
  if (prefix === "#/definitions/") {
    if (result.format === "int-or-string") result.type = "string";
    for (const key of ["oneOf", "anyOf", "not", "nullable"]) delete result[key];
  }
  return result;
}

/** What can be done with the types, in the detail that clients look at: parameters and media types. */
export function pathsOf(
  types: ResourceType[],
  version: 2 | 3,
  reviews: readonly ResourceType[] = [],
): Record<string, unknown> {
  const paths: Record<string, unknown> = {};
  for (const type of types) {
    const { group, version: apiVersion, kind } = type;
    const base = group ? `/apis/${groupVersionOf(type)}` : `/api/${apiVersion}`;
    const scope = type.namespaced ? "/namespaces/{namespace}" : "";
    const collection = `${base}${scope}/${type.plural}`;
    const operation = (action: string, write = false, consumes?: string[]) => ({
      "x-kubernetes-action": action,
      "x-kubernetes-group-version-kind": { group, version: apiVersion, kind },
      parameters: write ? writeParameters(version, action) : [],
      ...(consumes && bodyOf(version, consumes)),
      responses: { "200": { description: "OK" } },
    });
    if (reviews.includes(type)) {
      paths[collection] = { post: operation("post", true) };
      continue;
    }
    paths[collection] = {
      get: operation("list"),
      post: operation("post", true),
      delete: operation("deletecollection"),
    };
    paths[`${collection}/{name}`] = {
      get: operation("get"),
      put: operation("put", true),
      patch: operation(
        "patch",
        true,
        patchTypes.filter((each) => !type.custom || !each.includes("strategic")),
      ),
      delete: operation("delete"),
    };
  }
  return paths;
}

const patchTypes = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];

function writeParameters(version: 2 | 3, action: string): object[] {
  const names = [
    "dryRun",
    "fieldManager",
    "fieldValidation",
    ...(action === "patch" ? ["force"] : []),
  ];
  return names.map((name) => {
    const type = name === "force" ? "boolean" : "string";
    const typed =
      version === 2 ? { type, uniqueItems: true } : { schema: { type, uniqueItems: true } };
    return { name, in: "query", ...typed };
  });
}

function bodyOf(version: 2 | 3, types: string[]): object {
  if (version === 2) return { consumes: types };
  const content = Object.fromEntries(types.map((type) => [type, { schema: { type: "object" } }]));
  return { requestBody: { content, required: true } };
}
