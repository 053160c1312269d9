import { deepEqual, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { type DefinitionSpec } from "../../resources/catalog.ts";
import { type PrinterColumn, type ScalePaths } from "../../resources/custom-version.ts";
import { nameProblems } from "../../resources/metadata.ts";
import { validateConversion } from "../../schema/conversion/validation.ts";
import { type Schema } from "../../schema/schema.ts";
import { validateOpenApiSchema } from "./schema-validation.ts";

type Names = DefinitionSpec["names"];
type Version = DefinitionSpec["versions"][number];
interface Definition {
  spec?: DefinitionSpec;
  status?: { storedVersions?: string[] };
}

const columnTypes = ["boolean", "date", "integer", "number", "string"];
const columnFormats = [
  "byte",
  "date",
  "date-time",
  "double",
  "float",
  "int32",
  "int64",
  "password",
];
const maxSelectableFields = 8;
const maxDeprecationWarning = 256;

/** `apiextensions-apiserver/pkg/apis/apiextensions/validation`. */
export function validateDefinition(
  object: UnknownObject,
  errors: FieldErrors,
  old: UnknownObject | undefined,
): void {
  const { spec, status } = object as Definition;
  const { names, group } = (spec ?? {}) as Partial<DefinitionSpec>;
  const wanted = `${names?.plural ?? ""}.${group ?? ""}`;
  const { name } = object.metadata;
  if (!old && name !== wanted)
    errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group');
  const before = (old as Definition | undefined)?.spec;
  validateSpec(spec ?? {}, errors);
  if (before && spec) validateUnchanged(spec, before, errors);
  validateStoredVersions(status?.storedVersions ?? [], spec?.versions ?? [], errors);
}

function validateSpec(spec: Partial<DefinitionSpec>, errors: FieldErrors): void {
  const { group = "", scope, versions = [], names } = spec;
  if (group === "") errors.required("spec.group");
  else {
    const problems = nameProblems(group, "subdomain");
    if (problems.length > 0) errors.invalid("spec.group", group, problems.join(","));
    else if (!group.includes("."))
      errors.invalid("spec.group", group, "should be a domain with at least one dot");
  }
  if (!scope) errors.required("spec.scope");
  else if (scope !== "Namespaced" && scope !== "Cluster")
    errors.unsupported("spec.scope", scope, ["Cluster", "Namespaced"]);
  for (const [index, { schema }] of versions.entries()) {
    if (!schema?.openAPIV3Schema) errors.required(`spec.versions[${index}].schema.openAPIV3Schema`);
  }
  const shared = sharedOf(versions);
  for (const [index, version] of versions.entries())
    validateVersion(version, shared, `spec.versions[${index}]`, errors);
  const shown = () => versions.map((version) => goForm(version, shared));
  if (new Set(versions.map((version) => version.name)).size !== versions.length)
    errors.invalid("spec.versions", shown(), "must contain unique version names");
  if (versions.filter(({ storage }) => storage).length !== 1) {
    const detail = "must have exactly one version marked as storage version";
    errors.invalid("spec.versions", shown(), detail);
  }
  validateNames((names ?? {}) as Names, errors);
  const [first] = versions;
  if (first && shared.schema) validateSchema(first, "spec.validation", hasStatus(versions), errors);
  if (first && shared.subresources) validateScale(first, "spec.subresources", errors);
  if (first && shared.columns) validateColumns(first, "spec", errors);
  validateConversion(spec.conversion, "spec.conversion", errors);
}

/** What all versions have in common belongs to the whole definition, and is reported once. */
interface Shared {
  schema: boolean;
  subresources: boolean;
  columns: boolean;
}

function sharedOf(versions: Version[]): Shared {
  const [first] = versions;
  const isShared = (key: "schema" | "subresources" | "additionalPrinterColumns") =>
    versions.every((each) => each[key] !== undefined && deepEqual(each[key], first?.[key]));
  return {
    schema: isShared("schema"),
    subresources: isShared("subresources"),
    columns: isShared("additionalPrinterColumns"),
  };
}

function validateVersion(
  version: Version,
  shared: Shared,
  path: string,
  errors: FieldErrors,
): void {
  const problems = nameProblems(version.name ?? "", "service");
  if (problems.length > 0) errors.invalid(`${path}.name`, version.name ?? "", problems.join(","));
  const { deprecated, deprecationWarning } = version;
  if (deprecationWarning !== undefined) {
    const at = `${path}.deprecationWarning`;
    const told = (detail: string) => errors.invalid(at, deprecationWarning, detail);
    if (!deprecated) told("can only be set for deprecated versions");
    else if (deprecationWarning.length > maxDeprecationWarning)
      told("must be <= 256 characters long");
    else if (deprecationWarning === "") told("must not be an empty string");
  }
  if (!shared.schema) validateSchema(version, `${path}.schema`, hasStatus([version]), errors);
  if (!shared.subresources) validateScale(version, `${path}.subresources`, errors);
  if (!shared.columns) validateColumns(version, path, errors);
  validateSelectableFields(version, `${path}.selectableFields`, errors);
}

function hasStatus(versions: Version[]): boolean {
  return versions.some(({ subresources }) => subresources?.status !== undefined);
}

function validateSchema(
  { schema }: Version,
  path: string,
  hasStatusSubresource: boolean,
  errors: FieldErrors,
): void {
  const root = schema?.openAPIV3Schema;
  if (root) validateOpenApiSchema(root, `${path}.openAPIV3Schema`, hasStatusSubresource, errors);
}

function validateScale({ subresources }: Version, path: string, errors: FieldErrors): void {
  const scale = subresources?.scale;
  if (!scale) return;
  const {
    specReplicasPath = "",
    statusReplicasPath = "",
    labelSelectorPath = "",
  } = scale as Partial<ScalePaths>;
  const check = (field: string, value: string, roots: string[], where: string) => {
    const at = `${path}.scale.${field}`;
    if (!value.startsWith("."))
      errors.invalid(at, value, "must be a simple json path starting with .");
    else if (!roots.some((root) => value.startsWith(root)))
      errors.invalid(at, value, `should be a json path under ${where}`);
  };
  if (specReplicasPath === "") errors.required(`${path}.scale.specReplicasPath`);
  else check("specReplicasPath", specReplicasPath, [".spec."], ".spec");
  if (statusReplicasPath === "") errors.required(`${path}.scale.statusReplicasPath`);
  else check("statusReplicasPath", statusReplicasPath, [".status."], ".status");
  if (labelSelectorPath !== "")
    check(
      "labelSelectorPath",
      labelSelectorPath,
      [".spec.", ".status."],
      "either .spec or .status",
    );
}

function validateColumns(version: Version, path: string, errors: FieldErrors): void {
  for (const [index, column] of (version.additionalPrinterColumns ?? []).entries()) {
    const at = `${path}.additionalPrinterColumns[${index}]`;
    const { name = "", type = "", format = "", jsonPath = "" } = column as Partial<PrinterColumn>;
    if (name === "") errors.required(`${at}.name`);
    const typeDetail = `must be one of ${columnTypes.toSorted().join(",")}`;
    if (type === "") errors.required(`${at}.type`, typeDetail);
    else if (!columnTypes.includes(type)) errors.invalid(`${at}.type`, type, typeDetail);
    if (format !== "" && !columnFormats.includes(format))
      errors.invalid(`${at}.format`, format, `must be one of ${columnFormats.join(",")}`);
    if (jsonPath === "") errors.required(`${at}.JSONPath`);
    else if (!jsonPath.startsWith("."))
      errors.invalid(`${at}.JSONPath`, jsonPath, "must be a simple json path starting with .");
  }
}

function validateSelectableFields(version: Version, path: string, errors: FieldErrors): void {
  const fields = version.selectableFields ?? [];
  const root = version.schema?.openAPIV3Schema;
  const seen = new Set<string>();
  for (const [index, { jsonPath = "" }] of fields.entries()) {
    const at = `${path}[${index}].jsonPath`;
    if (jsonPath === "") {
      errors.required(at);
      continue;
    }
    const found = root && fieldAt(root, jsonPath);
    if (!found) errors.invalid(at, jsonPath, "is an invalid path: does not refer to a valid field");
    else if (!["string", "boolean", "integer"].includes(found.type ?? ""))
      errors.invalid(
        at,
        jsonPath,
        "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
      );
    else if (jsonPath.startsWith(".metadata."))
      errors.invalid(at, jsonPath, "must not point to fields in metadata");
    if (seen.has(jsonPath)) errors.duplicate(at, jsonPath);
    seen.add(jsonPath);
  }
  if (fields.length > maxSelectableFields) errors.tooMany(path, fields.length, maxSelectableFields);
}

function fieldAt(root: Schema, jsonPath: string): Schema | undefined {
  return jsonPath
    .split(".")
    .slice(1)
    .reduce<Schema | undefined>((schema, key) => schema?.properties?.[key], root);
}

function validateNames(names: Names, errors: FieldErrors): void {
  for (const field of ["plural", "singular", "kind", "listKind"] as const)
    if (!names[field]) errors.required(`spec.names.${field}`);
  const check = (path: string, value: string | undefined, prefix = "") => {
    const problems = value ? nameProblems(prefix ? value.toLowerCase() : value, "service") : [];
    if (problems.length > 0)
      errors.invalid(`spec.names.${path}`, value, prefix + problems.join(","));
  };
  const mixed = "may have mixed case, but should otherwise match: ";
  check("plural", names.plural);
  check("singular", names.singular);
  check("kind", names.kind, mixed);
  check("listKind", names.listKind, mixed);
  for (const [index, each] of (names.shortNames ?? []).entries())
    check(`shortNames[${index}]`, each);
  if (names.kind && names.kind === names.listKind)
    errors.invalid("spec.names.listKind", names.listKind, "kind and listKind may not be the same");
  for (const [index, each] of (names.categories ?? []).entries())
    check(`categories[${index}]`, each);
}

/** Objects are stored under these. */
function validateUnchanged(spec: DefinitionSpec, old: DefinitionSpec, errors: FieldErrors): void {
  const check = (path: string, now: unknown, before: unknown) => {
    if (now !== before) errors.invalid(path, now, "field is immutable");
  };
  check("spec.scope", spec.scope, old.scope);
  check("spec.names.kind", spec.names?.kind, old.names?.kind);
  check("spec.group", spec.group, old.group);
  check("spec.names.plural", spec.names?.plural, old.names?.plural);
}

/** A version in which objects may still be stored cannot go. */
function validateStoredVersions(stored: string[], versions: Version[], errors: FieldErrors): void {
  const path = "status.storedVersions";
  if (stored.length === 0)
    return errors.invalid(path, null, "must have at least one stored version");
  for (const { name, storage } of versions) {
    if (storage && !stored.includes(name))
      errors.invalid(path, stored, `must have the storage version ${name}`);
  }
  for (const [index, name] of stored.entries()) {
    if (versions.some((version) => version.name === name)) continue;
    const detail = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    errors.invalid(`${path}[${index}]`, name, detail);
  }
}

/** As Go prints a version. */
function goForm(version: Version, shared: Shared): object {
  return {
    Name: version.name ?? "",
    Served: version.served ?? false,
    Storage: version.storage ?? false,
    Deprecated: version.deprecated ?? false,
    DeprecationWarning: version.deprecationWarning ?? null,
    Schema: shared.schema ? null : (version.schema ?? null),
    Subresources: shared.subresources ? null : (version.subresources ?? null),
    AdditionalPrinterColumns: shared.columns ? null : (version.additionalPrinterColumns ?? null),
    SelectableFields: version.selectableFields ?? null,
  };
}
