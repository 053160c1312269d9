import { type ASTNode } from "@marcbachmann/cel-js";
import { identifierOf } from "./cel-identifiers.ts";
import { fieldSchema, itemSchema, type Schema } from "./schema.ts";

/** What one rule may be estimated to cost, and all of a definition together (`k8s.io/apiserver/pkg/cel`). */
export const estimateLimit = 10_000_000;
export const totalEstimateLimit = 100_000_000;

/** A request's body, as API servers take it: no list or map in it is longer. */
const maxRequestBytes = 3 * 1024 * 1024;

/** What is known of a value before there is one. */
interface Shape {
  schema?: Schema | undefined;
  /**
   * The greatest number of items of a list or entries of a map. Undefined when the expression alone does not
   * determine it.
   */
  size?: number | undefined;
  /** Of its items. */
  item?: Shape | undefined;
}

type Scope = Record<string, Shape>;

interface Estimate extends Shape {
  cost: number;
}

/**
 * The steps that an expression takes at most, as far as the schema and its own lists bound what it goes through; what they do not bound
 * counts once, for evaluation has a limit of its own. Never more than Kubernetes estimates, whose rule of reckoning this is.
 */
export function estimatedCost(node: ASTNode, schema?: Schema): number {
  const self: Shape = schema ? shapeOf(schema) : {};
  return estimate(node, { self, oldSelf: self }).cost;
}

/** How many values of a list or map with this schema there can be in one request. */
export function maxElements(schema: Schema): number | undefined {
  if (schema.type === "array") {
    const items = itemSchema(schema);
    return items && (schema.maxItems ?? Math.floor(maxRequestBytes / (minBytes(items) + 1)));
  }
  const entries = entrySchema(schema);
  if (!entries) return undefined;
  return schema.maxProperties ?? Math.floor(maxRequestBytes / (minBytes(entries) + 6));
}

/** How many values with this schema there can be in one request, when nothing bounds the lists that they are in. */
export function unboundedCount(schema: Schema): number {
  return Math.floor(maxRequestBytes / (minBytes(schema) + 1));
}

/** What the shortest value takes as JSON. */
function minBytes(schema: Schema, depth = 0): number {
  switch (schema.type) {
    case "string":
    case "array":
      return 2;
    case "boolean":
      return 4;
    case "object": {
      let bytes = 2;
      if (depth < 8) {
        for (const name of schema.required ?? []) {
          const field = schema.properties?.[name];
          if (field && field.default === undefined)
            bytes += name.length + 4 + minBytes(field, depth + 1);
        }
      }
      return bytes;
    }
  }
  return 1;
}

function entrySchema(schema: Schema): Schema | undefined {
  const rest = schema.additionalProperties;
  return typeof rest === "object" ? rest : undefined;
}

function shapeOf(schema: Schema | undefined): Shape {
  return schema ? { schema, size: maxElements(schema) } : {};
}

/** What a comprehension's variable stands for. */
function itemOf({ schema, item }: Shape): Shape {
  if (item) return item;
  // Of a map it is the key.
  return schema?.type === "array" ? shapeOf(itemSchema(schema)) : {};
}

function estimate(node: ASTNode, scope: Scope): Estimate {
  switch (node.op) {
    case "value":
      return { cost: 0 };
    case "id":
      return { cost: 1, ...(Object.hasOwn(scope, node.args) ? scope[node.args] : undefined) };
    case ".":
    case ".?": {
      const [owner, name] = node.args as [ASTNode, string | ASTNode];
      const { cost, schema } = estimate(owner, scope);
      return { cost: cost + 1, ...shapeOf(fieldOf(schema, name)) };
    }
    case "[]":
    case "[?]": {
      const owner = estimate(node.args[0], scope);
      const { cost } = estimate(node.args[1], scope);
      const entry = owner.schema && entrySchema(owner.schema);
      return { cost: owner.cost + cost + 1, ...(entry ? shapeOf(entry) : itemOf(owner)) };
    }
    case "list": {
      const items = node.args.map((each) => estimate(each, scope));
      const [item] = items.toSorted((a, b) => (b.size ?? 0) - (a.size ?? 0));
      return { cost: sum(items) + 10, size: items.length, item };
    }
    case "map": {
      const parts = node.args.flatMap((entry) => entry.map((each) => estimate(each, scope)));
      return { cost: sum(parts) + 30, size: node.args.length };
    }
    case "?:": {
      const [condition, first, second] = node.args.map((each) => estimate(each, scope));
      if (!condition || !first || !second) return { cost: 0 };
      const larger = (first.size ?? 0) >= (second.size ?? 0) ? first : second;
      return { ...larger, cost: condition.cost + Math.max(first.cost, second.cost) };
    }
    case "&&":
    case "||":
      return { cost: sum(node.args.map((each) => estimate(each, scope))) };
    case "rcall":
      return estimateCall(node, scope);
    case "call": {
      if (node.args[0] === "has") return { cost: 1 };
      return { cost: sum(node.args[1].map((each) => estimate(each, scope))) + 1 };
    }
  }
  return { cost: sum(nodesIn(node.args).map((each) => estimate(each, scope))) + 1 };
}

const macros = ["all", "exists", "exists_one", "existsOne", "map", "filter"];

function estimateCall(node: ASTNode & { op: "rcall" }, scope: Scope): Estimate {
  const [name, receiver, list] = node.args;
  const [first] = list;
  if (name === "bind" && first?.op === "id" && list.length === 3) {
    const [, value, body] = list as [ASTNode, ASTNode, ASTNode];
    const bound = estimate(value, scope);
    const result = estimate(body, { ...scope, [first.args]: bound });
    return { ...result, cost: bound.cost + result.cost };
  }
  const range = estimate(receiver, scope);
  if (!macros.includes(name) || first?.op !== "id")
    return { cost: range.cost + sum(list.map((each) => estimate(each, scope))) + 1 };
  const item = itemOf(range);
  const steps = list.slice(1).map((each) => estimate(each, { ...scope, [first.args]: item }));
  const cost = range.cost + (range.size ?? 1) * (sum(steps) + 1);
  if (name === "filter") return { ...range, cost };
  if (name === "map") return { cost, size: range.size, item: steps.at(-1) };
  return { cost };
}

function fieldOf(schema: Schema | undefined, name: string | ASTNode): Schema | undefined {
  if (!schema || typeof name !== "string") return undefined;
  const known = Object.keys(schema.properties ?? {});
  const key = known.find((each) => each === name || identifierOf(each) === name);
  return key === undefined ? entrySchema(schema) : fieldSchema(schema, key);
}

function sum(estimates: readonly Estimate[]): number {
  return estimates.reduce((total, { cost }) => total + cost, 0);
}

function nodesIn(value: unknown): ASTNode[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  return typeof value === "object" && value !== null && "op" in value ? [value as ASTNode] : [];
}

/** Kubernetes' words for an estimate above its limit. */
export function exceededText(what: string, cost: number, limit: number): string {
  const factor = cost / limit;
  const shown =
    factor > 100 ? "more than 100x" : `${factor < 1.5 ? factor.toFixed(6) : factor.toFixed(1)}x`;
  return `${what} exceeds budget by factor of ${shown} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
}
