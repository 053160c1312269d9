import { type ASTNode, type ParseResult } from "@marcbachmann/cel-js";
import { type Logger, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { type CustomVersion } from "../resources/custom-version.ts";
import { elementOf } from "../apply/typed-value.ts";
import { parseRule } from "./cel-environment.ts";
import { identifierOf } from "./cel-identifiers.ts";
import {
  fieldSchema,
  isNamedField,
  itemSchema,
  type Schema,
  type ValidationRule,
} from "./schema.ts";

interface CompiledRule {
  rule: ValidationRule;
  evaluate: ParseResult | undefined;
  messageExpression: ParseResult | undefined;
  /** Only checked when there is a value to compare with. */
  isTransition: boolean;
  /** How deeply comprehensions are nested: their cost is a power of the sizes of lists. */
  loops: number;
}

/** By schema node, so that they live as long as the definition they come from. */
const compiledRules = new WeakMap<Schema, CompiledRule[]>();
const hasRulesBelow = new WeakMap<Schema, boolean>();

/** Steps that one object's rules may take together; some tens of milliseconds. */
const costBudget = 5_000_000;

interface Run {
  errors: FieldErrors;
  budget: number;
  log: Logger;
}

/**
 * Evaluates the CEL rules of a schema against an object of it, those about transitions against the old
 * one too. Rules whose evaluation fails count as violated, as in Kubernetes.
 */
export function validateRules(
  custom: CustomVersion,
  object: UnknownObject,
  old: UnknownObject | undefined,
  errors: FieldErrors,
  log: Logger,
): void {
  if (!rulesBelow(custom.openApiSchema)) return;
  visit(object, old, custom.openApiSchema, "", { errors, budget: costBudget, log }, true);
}

export function hasRules(custom: CustomVersion): boolean {
  return rulesBelow(custom.openApiSchema);
}

function visit(
  value: unknown,
  old: unknown,
  schema: Schema,
  path: string,
  run: Run,
  isRoot = false,
): void {
  if (value === null || value === undefined || !rulesBelow(schema)) return;
  for (const compiled of rulesOf(schema)) check(compiled, value, old, schema, path, run, isRoot);
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    if (!items) return;
    const before = oldItems(old, schema);
    for (const [index, item] of value.entries()) {
      const previous = before?.get(elementOf(item, schema));
      visit(item, previous, items, `${path}[${index}]`, run);
    }
  } else if (typeof value === "object") {
    for (const [key, child] of Object.entries(value)) {
      const field = fieldSchema(schema, key);
      const previous = (old as Record<string, unknown> | undefined)?.[key];
      if (field) visit(child, previous, field, path ? `${path}.${key}` : key, run);
    }
  }
}

/** Items of a list can be told apart over time only when they have keys. */
function oldItems(old: unknown, schema: Schema): Map<string, unknown> | undefined {
  if (schema["x-kubernetes-list-type"] !== "map" || !Array.isArray(old)) return undefined;
  return new Map(old.map((item) => [elementOf(item, schema), item]));
}

function check(
  compiled: CompiledRule,
  value: unknown,
  old: unknown,
  schema: Schema,
  path: string,
  run: Run,
  isRoot: boolean,
): void {
  const { rule, evaluate } = compiled;
  if (compiled.isTransition && old === undefined) return;
  if (!evaluate || run.budget < 0) return;
  const context = {
    self: celValue(value, schema, isRoot),
    oldSelf: old === undefined ? undefined : celValue(old, schema, isRoot),
  };
  run.budget -= longestList(value) ** compiled.loops;
  if (run.budget < 0) {
    run.errors.forbidden(
      path || "<nil>",
      "validation failed due to running out of cost budget, no further validation rules will be run",
    );
    return;
  }
  try {
    if (evaluate(context) === true) return;
    report(rule, told(compiled, context, run), value, path, run.errors);
  } catch (error) {
    run.log.debug({ rule: rule.rule, path, error }, "CEL rule failed to evaluate");
    const cause = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    const detail = rule.message ?? `rule evaluation error: ${cause}`;
    report(rule, detail, value, path, run.errors);
  }
}

function told(compiled: CompiledRule, context: object, run: Run): string {
  const { rule, messageExpression } = compiled;
  if (messageExpression) {
    try {
      const message: unknown = messageExpression(context);
      if (typeof message === "string" && message.trim() && !message.includes("\n")) return message;
    } catch (error) {
      run.log.debug({ rule: rule.rule, error }, "message expression failed to evaluate");
    }
  }
  return rule.message?.trim() ?? `failed rule: ${rule.rule.trim()}`;
}

function report(
  rule: ValidationRule,
  message: string,
  value: unknown,
  path: string,
  errors: FieldErrors,
): void {
  const field = (path + (rule.fieldPath ?? "")).replace(/^\./, "") || "<nil>";
  switch (rule.reason) {
    case "FieldValueForbidden":
      return errors.forbidden(field, message);
    case "FieldValueRequired":
      return errors.required(field, message);
    case "FieldValueDuplicate":
      return errors.duplicate(field, value);
    default:
      return typeof value === "object"
        ? errors.broken(field, message)
        : errors.invalid(field, value, message);
  }
}

function rulesOf(schema: Schema): CompiledRule[] {
  let compiled = compiledRules.get(schema);
  if (!compiled) {
    compiled = (schema["x-kubernetes-validations"] ?? []).map(compile);
    compiledRules.set(schema, compiled);
  }
  return compiled;
}

function compile(rule: ValidationRule): CompiledRule {
  const evaluate = parsed(rule.rule);
  return {
    rule,
    evaluate,
    messageExpression: rule.messageExpression ? parsed(rule.messageExpression) : undefined,
    isTransition: evaluate !== undefined && mentions(evaluate.ast, "oldSelf"),
    loops: evaluate ? nestedLoops(evaluate.ast) : 0,
  };
}

function parsed(expression: string): ParseResult | undefined {
  try {
    return parseRule(expression);
  } catch {
    // Refused when the definition was written; an older definition stays usable without the rule.
    return undefined;
  }
}

function rulesBelow(schema: Schema, depth = 0): boolean {
  const known = hasRulesBelow.get(schema);
  if (known !== undefined) return known;
  if (depth > 64) return true;
  const children = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.items ? [schema.items] : []),
    ...(typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : []),
  ];
  const result =
    (schema["x-kubernetes-validations"]?.length ?? 0) > 0 ||
    children.some((child) => rulesBelow(child, depth + 1));
  hasRulesBelow.set(schema, result);
  return result;
}

/** JSON as CEL sees it: whole numbers are integers, times are times. */
export function celValue(value: unknown, schema: Schema | undefined, isRoot = false): unknown {
  if (typeof value === "number") {
    const whole = Number.isInteger(value) && schema?.type !== "number";
    return whole ? BigInt(value) : value;
  }
  if (typeof value === "string" && schema?.format === "date-time") return new Date(value);
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    return value.map((item) => celValue(item, items));
  }
  if (typeof value !== "object" || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const [key, child] of Object.entries(value)) {
    if (child === undefined) continue;
    const named = isNamedField(schema, key);
    // Fields that the schema does not name cannot be seen, but for an object's type and name.
    if (!named && !schema?.additionalProperties && !visibleAtRoot(key, schema, isRoot)) continue;
    result[named ? identifierOf(key) : key] = celValue(child, fieldSchema(schema, key));
  }
  return result;
}

function visibleAtRoot(key: string, schema: Schema | undefined, isRoot: boolean): boolean {
  const embedded = isRoot || schema?.["x-kubernetes-embedded-resource"] === true;
  if (embedded && ["apiVersion", "kind", "metadata"].includes(key)) return true;
  return schema?.["x-kubernetes-preserve-unknown-fields"] === true || !schema?.properties;
}

/** The size of the largest list, map or text in a value; what one comprehension may go through. */
export function longestList(value: unknown): number {
  if (typeof value === "string") return Math.ceil(value.length / 100) || 1;
  if (typeof value !== "object" || value === null) return 1;
  const children = Object.values(value);
  return children.reduce(
    (longest: number, child) => Math.max(longest, longestList(child)),
    Math.max(1, children.length),
  );
}

const comprehensions = new Set(["all", "exists", "exists_one", "existsOne", "map", "filter"]);

function children(node: unknown): ASTNode[] {
  if (Array.isArray(node)) return node.flatMap(children);
  return typeof node === "object" && node !== null && "op" in node ? [node as ASTNode] : [];
}

/** How deeply comprehensions are nested. */
export function nestedLoops(node: ASTNode): number {
  const below = children(node.args).map(nestedLoops);
  const deepest = below.length > 0 ? Math.max(...below) : 0;
  const isLoop = node.op === "rcall" && comprehensions.has(node.args[0]);
  return deepest + (isLoop ? 1 : 0);
}

/** Whether an expression names a variable. */
export function mentions(node: ASTNode, name: string): boolean {
  if (node.op === "id" && node.args === name) return true;
  return children(node.args).some((child) => mentions(child, name));
}
