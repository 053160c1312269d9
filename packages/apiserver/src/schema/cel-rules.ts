import { type ASTNode, type ParseResult } from "@marcbachmann/cel-js";
import { type Logger, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { type CustomVersion } from "../resources/custom-version.ts";
import { elementOf } from "../apply/typed-value.ts";
import { parseRule } from "./cel-environment.ts";
import { CostBudget, CostLimitError, evaluateMetered } from "./cel-meter.ts";
import { identifierOf } from "./cel-identifiers.ts";
import {
  fieldSchema,
  isNamedField,
  itemSchema,
  type Schema,
  type ValidationRule,
} from "./schema.ts";
import { isInt64, isNumber } from "../json.ts";

interface CompiledRule {
  rule: ValidationRule;
  evaluate: ParseResult | undefined;
  messageExpression: ParseResult | undefined;
  /** Only checked when there is a value to compare with. */
  isTransition: boolean;
}

/** By schema node, so that they live as long as the definition they come from. */
const compiledRules = new WeakMap<Schema, CompiledRule[]>();
const hasRulesBelow = new WeakMap<Schema, boolean>();

/** What one object's rules may cost together, above a tenth of a second. Kubernetes, where others need not wait for it, allows twice as much. */
const costBudget = 5_000_000;

interface Run {
  errors: FieldErrors;
  budget: CostBudget;
  /** No more rules are evaluated. */
  isOver: boolean;
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
  const run: Run = { errors, budget: new CostBudget(costBudget), isOver: false, log };
  visit(object, old, custom.openApiSchema, "", run, true);
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
  const rules = rulesOf(schema);
  if (rules.length > 0) {
    // One form for all of them: making it takes longer than most rules.
    let context: Context | undefined;
    const contextOf = () => (context ??= contextFor(value, old, schema, isRoot));
    for (const compiled of rules) check(compiled, contextOf, value, old, schema, path, run);
  }
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

/** Items of a list can be matched with their earlier versions only when they have keys. */
function oldItems(old: unknown, schema: Schema): Map<string, unknown> | undefined {
  if (schema["x-kubernetes-list-type"] !== "map" || !Array.isArray(old)) return undefined;
  return new Map(old.map((item) => [elementOf(item, schema), item]));
}

/** What a rule can name. */
interface Context {
  self: unknown;
  oldSelf: unknown;
}

function contextFor(value: unknown, old: unknown, schema: Schema, isRoot: boolean): Context {
  return {
    self: celValue(value, schema, isRoot),
    oldSelf: old === undefined ? undefined : celValue(old, schema, isRoot),
  };
}

function check(
  compiled: CompiledRule,
  contextOf: () => Context,
  value: unknown,
  old: unknown,
  schema: Schema,
  path: string,
  run: Run,
): void {
  const { rule, evaluate } = compiled;
  if (compiled.isTransition && old === undefined) return;
  if (!evaluate || run.isOver) return;
  const context = contextOf();
  try {
    const isKept = evaluateMetered(evaluate, context, run.budget) === true;
    if (!isKept) report(rule, told(compiled, context, run), value, path, run.errors);
  } catch (error) {
    if (error instanceof CostLimitError) {
      run.isOver = true;
      const detail = `'${error.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${rule.message?.trim() || rule.rule.trim()}`;
      return run.errors.invalid(path || "<nil>", schema.type ?? "", detail);
    }
    run.log.debug({ rule: rule.rule, path, error }, "CEL rule failed to evaluate");
    const cause = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    const detail = rule.message ?? `rule evaluation error: ${cause}`;
    report(rule, detail, value, path, run.errors);
  }
  if (!run.budget.isSpent) return;
  run.isOver = true;
  run.errors.forbidden(
    path || "<nil>",
    "validation failed due to running out of cost budget, no further validation rules will be run",
  );
}

function told(compiled: CompiledRule, context: object, run: Run): string {
  const { rule, messageExpression } = compiled;
  if (messageExpression) {
    try {
      const message = evaluateMetered(messageExpression, context, run.budget);
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
  if (isNumber(value)) {
    if (schema?.type === "number") return Number(value);
    return isInt64(value) ? BigInt(value) : value;
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

function children(node: unknown): ASTNode[] {
  if (Array.isArray(node)) return node.flatMap(children);
  return typeof node === "object" && node !== null && "op" in node ? [node as ASTNode] : [];
}

/** Whether an expression names a variable. */
export function mentions(node: ASTNode, name: string): boolean {
  if (node.op === "id" && node.args === name) return true;
  return children(node.args).some((child) => mentions(child, name));
}
