import { isLabelKey } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { qualifiedNameDetail } from "../../resources/metadata.ts";
import { syntaxProblem } from "./expression.ts";
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
    else validateExpression(expression.trim(), `${at}.expression`, errors);
    if (!name) errors.required(`${at}.name`);
    else if (!isLabelKey(name)) errors.invalid(`${at}.name`, name, qualifiedNameDetail);
    if (name && names.has(name)) errors.duplicate(`${at}.name`, name);
    names.add(name);
  }
}

export function validateExpression(expression: string, path: string, errors: FieldErrors): void {
  const problem = syntaxProblem(expression);
  if (problem) errors.invalid(path, expression, `compilation failed: ${problem}`);
}
