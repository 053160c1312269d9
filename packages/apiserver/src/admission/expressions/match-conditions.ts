import { ownMessageOf } from "../../errors.ts";
import { Budget, type Bindings, evaluate } from "./expression.ts";

export interface MatchCondition {
  name: string;
  expression: string;
}

/**
 * Whether all conditions hold. One that is false decides; otherwise those that cannot be evaluated do: under `Fail`
 * an Error with their messages is thrown, under `Ignore` the conditions do not hold
 * (`k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions`).
 */
export function meetsConditions(
  conditions: readonly MatchCondition[] | undefined,
  failurePolicy: string | undefined,
  bindings: () => Bindings,
): boolean {
  if (!conditions?.length) return true;
  const budget = new Budget();
  const values = bindings();
  const problems: string[] = [];
  for (const { expression } of conditions) {
    try {
      if (evaluate(expression, values, budget) === false) return false;
    } catch (error) {
      problems.push(ownMessageOf(error));
    }
  }
  if (problems.length === 0) return true;
  if (failurePolicy === "Ignore") return false;
  throw new Error(aggregated(problems));
}

/** As apimachinery's `Aggregate` prints several errors. */
export function aggregated(texts: readonly string[]): string {
  const different = [...new Set(texts)];
  return different.length === 1 ? (different[0] ?? "") : `[${different.join(", ")}]`;
}
