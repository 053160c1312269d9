import { type FieldErrors } from "../../field-errors.ts";
import { parseRule } from "../../schema/cel-environment.ts";
import {
  estimatedCost,
  estimateLimit,
  exceededText,
  totalEstimateLimit,
  unboundedCount,
} from "../../schema/cel-estimate.ts";
import { undefinedFields } from "../../schema/cel-fields.ts";
import { mentions } from "../../schema/cel-rules.ts";
import { type Schema, type ValidationRule } from "../../schema/schema.ts";

const reasons = [
  "FieldValueDuplicate",
  "FieldValueForbidden",
  "FieldValueInvalid",
  "FieldValueRequired",
];
const maxDepth = 64;

/** Where a schema stands in that of the whole object. */
interface Position {
  isRoot: boolean;
  depth: number;
  /** The list or map within which values cannot be matched with their earlier versions. */
  uncorrelatable?: string | undefined;
  /** How many values of the schema an object can have; undefined when a list or map around it has no bound. */
  count: number | undefined;
  /** Of all rules, as far as they have been seen. */
  total: { cost: number };
}

/**
 * Checks the CEL rules of a schema that is valid otherwise: they must parse, name existing fields, and stay within
 * the cost limits. Rules of values that cannot be matched with their earlier versions must not refer to those.
 */
export function validateRules(schema: Schema, path: string, errors: FieldErrors): void {
  const total = { cost: 0 };
  validateBelow(schema, path, errors, { isRoot: true, depth: 0, count: 1, total });
  if (total.cost <= totalEstimateLimit) return;
  const what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
  errors.forbidden(path, exceededText(what, total.cost, totalEstimateLimit));
}

function validateBelow(schema: Schema, path: string, errors: FieldErrors, at: Position): void {
  if (at.depth > maxDepth) return;
  const below: Position = { ...at, isRoot: false, depth: at.depth + 1 };
  const times = (bound: number | undefined) =>
    at.count === undefined || bound === undefined ? undefined : at.count * bound;
  const isAtomic = schema["x-kubernetes-map-type"] === "atomic";
  const inMap = { ...below, uncorrelatable: at.uncorrelatable ?? (isAtomic ? path : undefined) };
  if (typeof schema.additionalProperties === "object")
    validateBelow(schema.additionalProperties, `${path}.additionalProperties`, errors, {
      ...below,
      count: times(schema.maxProperties),
    });
  for (const [key, child] of Object.entries(schema.properties ?? {}))
    validateBelow(child, `${path}.properties[${key}]`, errors, inMap);
  if (schema.items) {
    const hasKeys = schema["x-kubernetes-list-type"] === "map";
    const uncorrelatable = at.uncorrelatable ?? (hasKeys ? undefined : path);
    const inList = { ...below, uncorrelatable, count: times(schema.maxItems) };
    validateBelow(schema.items, `${path}.items`, errors, inList);
  }
  const rules = schema["x-kubernetes-validations"] ?? [];
  const known = errors.all.length;
  for (const [index, rule] of rules.entries())
    validateForm(rule, `${path}.x-kubernetes-validations[${index}]`, errors);
  if (errors.all.length > known) return;
  for (const [index, rule] of rules.entries()) {
    const place = `${path}.x-kubernetes-validations[${index}]`;
    validateExpressions(rule, schema, place, errors, at);
  }
}

function validateForm(rule: ValidationRule, path: string, errors: FieldErrors): void {
  const {
    rule: expression = "",
    message = "",
    messageExpression = "",
    reason,
  } = rule as Partial<ValidationRule>;
  const { fieldPath = "" } = rule;
  const hasBreaks = (text: string) => /[\n\r]/.test(text.trim());
  if (expression.trim() === "") errors.required(`${path}.rule`, "rule is not specified");
  else if (message !== "" && message.trim() === "")
    errors.invalid(`${path}.message`, message, "must be non-empty if specified");
  else if (hasBreaks(message))
    errors.invalid(`${path}.message`, message, "must not contain line breaks");
  else if (hasBreaks(expression) && message === "")
    errors.required(`${path}.message`, "message must be specified if rule contains line breaks");
  if (messageExpression !== "" && messageExpression.trim() === "")
    errors.required(
      `${path}.messageExpression`,
      "messageExpression must be non-empty if specified",
    );
  if (reason !== undefined && !reasons.includes(reason))
    errors.unsupported(`${path}.reason`, reason, reasons);
  if (fieldPath === "") return;
  if (fieldPath.trim() === "")
    errors.invalid(`${path}.fieldPath`, fieldPath, "must be non-empty if specified");
  if (hasBreaks(fieldPath))
    errors.invalid(`${path}.fieldPath`, fieldPath, "must not contain line breaks");
}

function validateExpressions(
  rule: ValidationRule,
  schema: Schema,
  path: string,
  errors: FieldErrors,
  { isRoot, uncorrelatable, count = unboundedCount(schema), total }: Position,
): void {
  for (const field of ["rule", "messageExpression"] as const) {
    const expression = rule[field];
    if (!expression) continue;
    const problem = problemOf(expression, schema, isRoot);
    if (problem === undefined) {
      const cost = estimatedCost(parseRule(expression).ast, schema) * count;
      total.cost += cost;
      if (cost <= estimateLimit) continue;
      const estimate = `estimated ${field} cost`;
      errors.forbidden(`${path}.${field}`, exceededText(estimate, cost, estimateLimit));
      continue;
    }
    const what = field === "rule" ? "compilation" : "messageExpression compilation";
    errors.invalid(`${path}.${field}`, goForm(rule), `${what} failed: ${problem}`);
  }
  if (usesOldSelf(rule.rule)) {
    if (uncorrelatable !== undefined)
      errors.invalid(
        `${path}.rule`,
        rule.rule,
        `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelatable}`,
      );
  } else if (rule.optionalOldSelf !== undefined) {
    const detail = "may not be set if oldSelf is not used in rule";
    errors.invalid(`${path}.optionalOldSelf`, rule.optionalOldSelf, detail);
  }
}

function usesOldSelf(expression: string): boolean {
  try {
    return mentions(parseRule(expression).ast, "oldSelf");
  } catch {
    return false;
  }
}

/** Why an expression cannot be evaluated, pointed at in its text. */
function problemOf(expression: string, schema: Schema, isRoot: boolean): string | undefined {
  try {
    const { ast } = parseRule(expression);
    const [first] = undefinedFields(ast, schema, isRoot);
    return first && framed(expression, first.position, `undefined field '${first.name}'`);
  } catch (error) {
    const { message, range } = error as Error & { range?: { start: number } };
    const text = `Syntax error: ${message.split("\n")[0] ?? ""}`;
    return framed(expression, range?.start ?? 0, text);
  }
}

function framed(expression: string, position: number, text: string): string {
  const before = expression.slice(0, position).split("\n");
  const column = before.at(-1)?.length ?? 0;
  const line = expression.split("\n")[before.length - 1] ?? "";
  return `ERROR: <input>:${before.length}:${column + 1}: ${text}\n | ${line}\n | ${".".repeat(column)}^`;
}

/** As Go prints a rule. */
function goForm(rule: ValidationRule): object {
  return {
    Rule: rule.rule,
    Message: rule.message ?? "",
    MessageExpression: rule.messageExpression ?? "",
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? "",
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  };
}
