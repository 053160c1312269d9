import { isLabelKey } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { qualifiedNameDetail } from "../../resources/metadata.ts";
import { estimateLimit, exceededText } from "../../schema/cel-estimate.ts";
import { costOf, resultType, syntaxProblem } from "./expression.ts";
import { type MatchCondition } from "./match-conditions.ts";

const maxConditions = 64;

/** Conditions of webhooks and policies. */
export function validateMatchConditions(
  conditions: readonly MatchCondition[] | undefined,
  path: string,
  errors: FieldErrors,
): void {
  const count = conditions?.length ?? 0;
  if (count > maxConditions) errors.tooMany(path, count, maxConditions);
  const names = new Set<string>();
  for (const [index, { name, expression }] of (conditions ?? []).entries()) {
    const at = `${path}[${index}]`;
    if (!expression?.trim()) errors.required(`${at}.expression`);
    else validateExpression(expression.trim(), `${at}.expression`, errors, ["bool"]);
    if (!name) errors.required(`${at}.name`);
    else if (!isLabelKey(name)) errors.invalid(`${at}.name`, name, qualifiedNameDetail);
    if (name && names.has(name)) errors.duplicate(`${at}.name`, name);
    names.add(name);
  }
}

/** Of an expression that must evaluate to one of these types, as CEL names them. */
export function validateExpression(
  expression: string,
  path: string,
  errors: FieldErrors,
  types: string[] = [],
): void {
  const problem = syntaxProblem(expression);
  if (problem) return errors.invalid(path, expression, `compilation failed: ${problem}`);
  const cost = costOf(expression);
  if (cost > estimateLimit) {
    const detail = exceededText("estimated expression cost", cost, estimateLimit);
    return errors.forbidden(path, detail);
  }
  const type = resultType(expression);
  if (type === undefined || types.length === 0 || types.includes(type)) return;
  const wanted = types.length === 1 ? types[0] : `one of [${types.join(" ")}]`;
  errors.invalid(path, expression, `must evaluate to ${wanted} but got ${type}`);
}
