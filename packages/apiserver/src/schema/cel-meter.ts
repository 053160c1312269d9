import { type Environment, type ParseResult } from "@marcbachmann/cel-js";

/** What one expression may cost (`PerCallLimit` of k8s.io/apiserver): 20 to 70 ms here. */
export const perCallLimit = 1_000_000;
/** Characters or items that cost as much as a step. */
const perStep = 10;
/** An error with its text costs as much as this many steps, and `all` and `exists` continue after it. */
const perError = 50;

export const callLimitExceeded = "operation cancelled: actual cost limit exceeded";

/** One expression, or all that share a budget, exceeded the cost limit. */
export class CostLimitError extends Error {
  override readonly name = "CostLimitError";
}

/** What several expressions may cost together. */
export class CostBudget {
  #left: number;

  constructor(limit: number) {
    this.#left = limit;
  }

  get isSpent(): boolean {
    return this.#left < 0;
  }

  spend(cost: number): void {
    this.#left -= cost;
  }
}

/** Of the expression that is being evaluated: there is only one at a time, those of its variables within it. */
let left = Infinity;
/** Characters and items of the values that the current step works on. */
let operands = 0;
let comparesDeeply = false;

/** Throws a `CostLimitError` when there is less left. Functions whose work is more than their arguments are long call it first. */
export function charge(cost: number): void {
  left -= cost;
  if (left < 0) throw new CostLimitError(callLimitExceeded);
}

/**
 * Evaluates and counts: a step for each part of the expression each time it is evaluated, wherever the lists come from that it goes
 * through, and one for each ten characters or items that a function or operator works on. Throws a `CostLimitError` above the limit
 * for one expression, and when the budget is spent.
 */
export function evaluateMetered(
  evaluate: ParseResult,
  context: object,
  budget: CostBudget,
): unknown {
  const outer = { left, operands, comparesDeeply };
  left = perCallLimit;
  operands = 0;
  comparesDeeply = false;
  const finish = () => {
    const spent = perCallLimit - left;
    budget.spend(spent);
    ({ left, operands, comparesDeeply } = outer);
    left -= spent;
    // Comprehensions continue after errors: they may have succeeded, or ended with another error.
    if (spent > perCallLimit) throw new CostLimitError(callLimitExceeded);
  };
  let value: unknown;
  try {
    value = evaluate(context);
  } catch (error) {
    finish();
    throw error;
  }
  finish();
  return value;
}

/** Operators and calls take time in proportion to what they work on; others only pass it on. */
const working = new Set(["+", "==", "!=", "in", "<", "<=", ">", ">=", "call", "rcall"]);
const deep = new Set(["==", "!=", "in"]);

interface Node {
  op: string;
  evaluate(evaluator: Evaluator, node: Node, context: unknown): unknown;
}

interface Evaluator {
  run(node: Node, context: unknown): unknown;
}

function sizeOf(value: unknown, deeply: boolean): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  if (!deeply) return Array.isArray(value) ? value.length : 0;
  let size = 0;
  for (const child of Object.values(value)) {
    // To look is work as well: parts that a value shares are looked at once for each place that has them.
    left -= 1 / perStep;
    if (left < 0) throw new CostLimitError(callLimitExceeded);
    size += 1 + sizeOf(child, true);
  }
  return size;
}

function metered(evaluator: Evaluator, node: Node, context: unknown): unknown {
  if (--left < 0) throw new CostLimitError(callLimitExceeded);
  const outer = operands;
  const isCompared = comparesDeeply;
  operands = 0;
  comparesDeeply = deep.has(node.op);
  let value: unknown;
  try {
    value = node.evaluate(evaluator, node, context);
  } catch (error) {
    left -= perError;
    throw error;
  }
  if (operands > perStep && working.has(node.op)) left -= Math.floor(operands / perStep);
  operands = outer + sizeOf(value, isCompared);
  comparesDeeply = isCompared;
  return value;
}

const probe = "costMeterProbe";

/**
 * Makes an environment count. Its evaluator, which runs each part of an expression, is known only to functions that are called by it: one
 * is, once.
 */
export function meter(environment: Environment): void {
  let isMetered = false;
  environment.registerFunction(`${probe}(): bool`, function (this: Evaluator) {
    if (isMetered) throw new Error(`undeclared reference to '${probe}'`);
    isMetered = true;
    this.run = (node, context) => metered(this, node, context);
    return true;
  });
  environment.evaluate(`${probe}()`);
  if (!isMetered) throw new Error("the CEL implementation does not show its evaluator");
}
