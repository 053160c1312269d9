import { fieldSchema, isNamedField, itemSchema, type Schema } from "../schema/schema.ts";
import { elementText } from "./field-set.ts";
import { elementOf } from "./typed-value.ts";
import { isNumber } from "../json.ts";

/**
 * Why an applied value does not fit its schema, in the words of structured-merge-diff
 * (`typed/validate.go`); undefined when it does. Looks at the kinds of values alone: what a number or text
 * may be is checked when the object is written.
 */
export function typedProblem(value: unknown, schema: Schema): string | undefined {
  const problems = problemsOf(value, schema, "");
  if (problems.length < 2) return problems[0];
  return `errors:\n${problems.map((each) => `  ${each}`).join("\n")}`;
}

function problemsOf(value: unknown, schema: Schema, path: string): string[] {
  if (value === null || value === undefined) return [];
  const expected = (what: string) => [`${path}: expected ${what}`];
  if (schema.type === "object" || schema.properties) {
    if (!schema.properties && typeof schema.additionalProperties !== "object") return [];
    if (typeof value !== "object" || Array.isArray(value))
      return expected(`map, got ${plain(value)}`);
    return problemsOfMap(value as Record<string, unknown>, schema, path);
  }
  if (schema.type === "array") {
    if (!Array.isArray(value)) return expected(`list, got ${plain(value)}`);
    return problemsOfList(value, schema, path);
  }
  const isScalar = typeof value !== "object";
  if (isUntyped(schema))
    return isScalar || !schema.type ? [] : expected(`any scalar, got ${plain(value)}`);
  switch (schema.type) {
    case "string":
      return typeof value === "string" ? [] : expected(`string, got ${detailed(value)}`);
    case "boolean":
      return typeof value === "boolean" ? [] : expected(`boolean, got ${plain(value)}`);
    case "integer":
    case "number":
      return isNumber(value) ? [] : expected(`numeric (int or float), got ${goTypeOf(value)}`);
  }
  return [];
}

function isUntyped(schema: Schema): boolean {
  return (
    !schema.type ||
    schema.format === "int-or-string" ||
    schema["x-kubernetes-int-or-string"] === true ||
    schema["x-kubernetes-preserve-unknown-fields"] === true
  );
}

function problemsOfMap(map: Record<string, unknown>, schema: Schema, path: string): string[] {
  const problems: string[] = [];
  const keepsUnknown =
    schema["x-kubernetes-preserve-unknown-fields"] === true ||
    typeof schema.additionalProperties === "object";
  for (const [key, child] of Object.entries(map)) {
    const at = `${path}.${key}`;
    const field = fieldSchema(schema, key);
    if (field) problems.push(...problemsOf(child, field, at));
    else if (!keepsUnknown && !isNamedField(schema, key))
      return [...problems, `${at}: field not declared in schema`];
  }
  return problems;
}

function problemsOfList(list: unknown[], schema: Schema, path: string): string[] {
  const items = itemSchema(schema);
  if (!items) return [];
  const problems: string[] = [];
  const seen = new Set<string>();
  const kind = schema["x-kubernetes-list-type"];
  for (const [index, item] of list.entries()) {
    let place = `[${index}]`;
    if (kind === "map" || kind === "set") {
      const problem = elementProblem(item, schema);
      if (problem) return [...problems, `${path}: element ${index}: ${problem}`];
      place = elementText(elementOf(item, schema));
      if (seen.has(place)) {
        problems.push(`${path}: duplicate entries for key ${place.replace("[=", "[")}`);
      }
      seen.add(place);
    }
    problems.push(...problemsOf(item, items, path + place));
  }
  return problems;
}

/** Why an item cannot be in a list whose items are distinguished by their values. */
function elementProblem(item: unknown, schema: Schema): string | undefined {
  if (schema["x-kubernetes-list-type"] === "map") {
    const list = "associative list with keys";
    if (item === null) return `${list} may not have a null element`;
    if (typeof item !== "object" || Array.isArray(item))
      return `${list} may not have non-map elements`;
    if (elementOf(item, schema) !== "k:{}") return undefined;
    const keys = (schema["x-kubernetes-list-map-keys"] ?? []).map((key) => JSON.stringify(key));
    return `${list} has an element that omits all key fields [${keys.join(" ")}] (and doesn't have default values for any key fields)`;
  }
  if (item === null) return "associative list without keys has an element that's an explicit null";
  if (Array.isArray(item)) return "not supported: associative list with lists as elements";
  if (typeof item !== "object") return undefined;
  return "associative list without keys has an element that's a map type";
}

/** As Go prints a value (`%v`). */
function plain(value: unknown): string {
  return `&{${goValue(value)}}`;
}

function goValue(value: unknown): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goValue).join(" ")}]`;
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[${entries.map(([key, each]) => `${key}:${goValue(each)}`).join(" ")}]`;
}

/** The same with its types (`%#v`). */
function detailed(value: unknown): string {
  return `&value.valueUnstructured{Value:${goSyntax(value)}}`;
}

function goSyntax(value: unknown): string {
  if (value === null) return "interface {}(nil)";
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  const shown = entries.map(([key, each]) => `${JSON.stringify(key)}:${goSyntax(each)}`);
  return `map[string]interface {}{${shown.join(", ")}}`;
}

function goTypeOf(value: unknown): string {
  if (Array.isArray(value)) return "[]interface {}";
  if (typeof value === "boolean") return "bool";
  return typeof value === "object" ? "map[string]interface {}" : typeof value;
}
