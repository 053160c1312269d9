import { type ASTNode } from "@marcbachmann/cel-js";
import { identifierOf } from "./cel-identifiers.ts";
import { fieldSchema, itemSchema, type Schema } from "./schema.ts";

/** A rule names a field that its schema does not have. */
export interface UndefinedField {
  name: string;
  /** Where its dot stands in the expression. */
  position: number;
}

/** Names in a rule and what they stand for; undefined for what can be anything. */
type Scope = Record<string, Schema | undefined>;

const typeFields = ["apiVersion", "kind", "metadata"];
const metadataSchema: Schema = {
  type: "object",
  properties: { name: { type: "string" }, generateName: { type: "string" } },
};

/**
 * The fields that an expression reads and its schema does not declare, as far as types can be followed:
 * through fields, indices and the variables of comprehensions. `isRoot` for the schema of a whole object.
 */
export function undefinedFields(node: ASTNode, schema: Schema, isRoot: boolean): UndefinedField[] {
  const self = isRoot ? withTypeFields(schema) : schema;
  const found: UndefinedField[] = [];
  typeOf(node, { self, oldSelf: self }, found);
  return found;
}

function withTypeFields(schema: Schema): Schema {
  const text: Schema = { type: "string" };
  const own = { apiVersion: text, kind: text, metadata: metadataSchema };
  return { ...schema, type: "object", properties: { ...schema.properties, ...own } };
}

/** The schema of what a node stands for; undefined when that is not known. */
function typeOf(node: ASTNode, scope: Scope, found: UndefinedField[]): Schema | undefined {
  switch (node.op) {
    case "id":
      return Object.hasOwn(scope, node.args) ? scope[node.args] : undefined;
    case ".": {
      const [owner, name] = node.args;
      const schema = typeOf(owner, scope, found);
      return schema && selected(schema, name, node, found);
    }
    case "[]": {
      const [owner, index] = node.args;
      typeOf(index, scope, found);
      const schema = typeOf(owner, scope, found);
      return itemSchema(schema) ?? entrySchema(schema);
    }
    case "rcall":
      return typeOfCall(node, scope, found);
    case "call": {
      const [, list] = node.args;
      for (const each of list) typeOf(each, scope, found);
      return undefined;
    }
    case "?:": {
      const [condition, first, second] = node.args;
      typeOf(condition, scope, found);
      const schema = typeOf(first, scope, found);
      return typeOf(second, scope, found) === schema ? schema : undefined;
    }
  }
  for (const each of nodesIn(node.args)) typeOf(each, scope, found);
  return undefined;
}

function selected(
  schema: Schema,
  name: string,
  node: ASTNode,
  found: UndefinedField[],
): Schema | undefined {
  const { type, properties } = schema;
  if (type !== "object" || schema["x-kubernetes-preserve-unknown-fields"]) return undefined;
  if (schema["x-kubernetes-embedded-resource"] && typeFields.includes(name))
    return name === "metadata" ? metadataSchema : { type: "string" };
  const key = Object.keys(properties ?? {}).find(
    (each) => each === name || identifierOf(each) === name,
  );
  if (key !== undefined) return fieldSchema(schema, key);
  if (typeof schema.additionalProperties === "object" || schema.additionalProperties === true)
    return entrySchema(schema);
  found.push({ name, position: node.pos - 1 });
  return undefined;
}

function entrySchema(schema: Schema | undefined): Schema | undefined {
  const rest = schema?.additionalProperties;
  return typeof rest === "object" ? rest : undefined;
}

const macros = [
  "all",
  "exists",
  "exists_one",
  "existsOne",
  "map",
  "filter",
  "transformList",
  "transformMap",
];

function typeOfCall(
  node: ASTNode & { op: "rcall" },
  scope: Scope,
  found: UndefinedField[],
): Schema | undefined {
  const [name, receiver, list] = node.args;
  const schema = typeOf(receiver, scope, found);
  const [first, second] = list;
  if (name === "bind" && first?.op === "id" && list.length === 3) {
    const [, value, body] = list as [ASTNode, ASTNode, ASTNode];
    const inner = { ...scope, [first.args]: typeOf(value, scope, found) };
    return typeOf(body, inner, found);
  }
  if (!macros.includes(name) || first?.op !== "id") {
    for (const each of list) typeOf(each, scope, found);
    return undefined;
  }
  const item = itemSchema(schema);
  const hasTwo = list.length > 2 && second?.op === "id" && name !== "map";
  const bound: Scope = hasTwo
    ? { [first.args]: undefined, [second.args]: item ?? entrySchema(schema) }
    : { [first.args]: item };
  const inner = { ...scope, ...bound };
  for (const each of list.slice(hasTwo ? 2 : 1)) typeOf(each, inner, found);
  return name === "filter" ? schema : undefined;
}

function nodesIn(value: unknown): ASTNode[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  return typeof value === "object" && value !== null && "op" in value ? [value as ASTNode] : [];
}
