/**
 * Writes the structure of the built-in kinds that the embedded API server serves, out of what the
 * Kubernetes project publishes with each release: discovery documents and OpenAPI v3.
 *
 *     node tools/generate-kube-schema/main.ts [v1.36.3]
 *
 * Needs Go, whose module proxy brings the release. Run `tools/generate-kube-protobuf` after it.
 * Writes to `packages/apiserver/src/generated/`:
 * - `kube-schema.json`: resources per group-version, and the definitions they reach, without prose;
 * - `kube-descriptions.json.gz`: the prose, definition by definition, loaded only for `kubectl explain`.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { bodyDefinitions, reviews, served } from "./served.ts";

type Json = Record<string, unknown>;

interface DiscoveredResource {
  name: string;
  kind: string;
  singularName: string;
  namespaced: boolean;
  verbs: string[];
  shortNames?: string[];
  categories?: string[];
}

const release = process.argv[2] ?? "v1.36.3";
const api = path.join(moduleDir(`k8s.io/kubernetes@${release}`), "api");
const definitions: Record<string, Json> = {};
const descriptions: Record<string, Json> = {};

const groupVersions = groupVersionsOf(served);
const reviewVersions = groupVersionsOf(reviews);

const out = path.resolve(import.meta.dirname, "../../packages/apiserver/src/generated");
mkdirSync(out, { recursive: true });
writeFileSync(
  path.join(out, "kube-schema.json"),
  JSON.stringify({
    release,
    groupVersions,
    reviews: reviewVersions,
    definitions: sorted(definitions),
  }) + "\n",
);
writeFileSync(
  path.join(out, "kube-descriptions.json.gz"),
  gzipSync(JSON.stringify(sorted(descriptions)), { level: 9 }),
);

function groupVersionsOf(table: Record<string, string[]>) {
  return Object.entries(table).map(([groupVersion, names]) => {
    const [group, version] = groupVersion.includes("/")
      ? (groupVersion.split("/") as [string, string])
      : ["", groupVersion];
    const prefix = group ? `apis__${group}__${version}` : `api__${version}`;
    const discovery = readJson(`discovery/${prefix}.json`) as { resources: DiscoveredResource[] };
    const schemas = (
      readJson(`openapi-spec/v3/${prefix}_openapi.json`) as {
        components: { schemas: Record<string, Json> };
      }
    ).components.schemas;
    const resources = names.map((name) => resourceOf(name, group, version, discovery, schemas));
    return { group, version, resources };
  });
}

function moduleDir(module: string): string {
  const answer = execFileSync("go", ["mod", "download", "-json", module], {
    cwd: "/",
    encoding: "utf8",
  });
  return (JSON.parse(answer) as { Dir: string }).Dir;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(path.join(api, file), "utf8"));
}

function resourceOf(
  name: string,
  group: string,
  version: string,
  discovery: { resources: DiscoveredResource[] },
  schemas: Record<string, Json>,
) {
  const found = discovery.resources.find((each) => each.name === name);
  if (!found) throw new Error(`resource ${name} is not in ${group}/${version}`);
  const definition = Object.keys(schemas).find((key) =>
    (schemas[key]?.["x-kubernetes-group-version-kind"] as Json[] | undefined)?.some(
      (gvk) => gvk.group === group && gvk.version === version && gvk.kind === found.kind,
    ),
  );
  if (!definition) throw new Error(`no definition of ${group}/${version} ${found.kind}`);
  collect(definition, schemas);
  for (const name of bodyDefinitions) if (schemas[name]) collect(name, schemas);
  return {
    plural: found.name,
    singular: found.singularName,
    kind: found.kind,
    namespaced: found.namespaced,
    ...(found.shortNames && { shortNames: found.shortNames }),
    ...(found.categories && { categories: found.categories }),
    status: discovery.resources.some((each) => each.name === `${name}/status`),
    scale: discovery.resources.some((each) => each.name === `${name}/scale`),
    definition,
  };
}

/** Takes a definition and all that it refers to. */
function collect(name: string, schemas: Record<string, Json>): void {
  if (definitions[name]) return;
  const schema = schemas[name];
  if (!schema) throw new Error(`definition ${name} is missing`);
  const prose: Json = {};
  if (schema.description) prose[""] = schema.description;
  const { properties, description: _, ...rest } = schema;
  delete rest["x-kubernetes-unions"];
  // Only kinds of their own are looked up by it; DeleteOptions, say, lists every group there is.
  const kinds = rest["x-kubernetes-group-version-kind"] as Json[] | undefined;
  if (kinds && kinds.length !== 1) delete rest["x-kubernetes-group-version-kind"];
  const compact: Json = { ...(compactSchema(rest) as Json) };
  if (properties) {
    const fields: Json = {};
    for (const [field, value] of Object.entries(properties as Record<string, Json>)) {
      if (value.description) prose[field] = value.description;
      fields[field] = compactSchema(value);
    }
    compact.properties = fields;
  }
  definitions[name] = compact;
  descriptions[name] = prose;
  for (const reference of JSON.stringify(compact).matchAll(/"\$ref":"([^"]+)"/g)) {
    collect(reference[1] ?? "", schemas);
  }
}

/** Without prose, `allOf` wrappers around references, and defaults that say nothing. */
function compactSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compactSchema);
  if (typeof value !== "object" || value === null) return value;
  const schema = value as Json;
  const result: Json = {};
  for (const [key, each] of Object.entries(schema)) {
    if (key === "description") continue;
    if (key === "default" && isEmpty(each)) continue;
    if (key === "allOf") Object.assign(result, compactSchema((each as Json[])[0]));
    else if (key === "$ref") result.$ref = String(each).replace("#/components/schemas/", "");
    else result[key] = compactSchema(each);
  }
  return result;
}

function isEmpty(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length === 0;
  return value === "" || value === 0 || value === false;
}

function sorted(record: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(
    Object.keys(record)
      .sort()
      .map((key) => [key, record[key] ?? {}]),
  );
}
