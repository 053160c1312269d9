import { type ParseResult } from "@marcbachmann/cel-js";
import { celEnvironment, parseRule } from "../../schema/cel-environment.ts";
import { registerAuthorizer } from "./cel-authorizer.ts";
import { estimatedCost } from "../../schema/cel-estimate.ts";
import { CostBudget, evaluateMetered } from "../../schema/cel-meter.ts";
import { mentions } from "../../schema/cel-rules.ts";

/** What an expression can name; values as CEL has them. */
export type Bindings = Record<string, unknown>;

/** What the expressions of one webhook or policy may cost together for a request; half of what Kubernetes allows, where others need not wait for it. */
const costBudget = 5_000_000;

export class Budget extends CostBudget {
  constructor() {
    super(costBudget);
  }
}

interface Compiled {
  evaluate: ParseResult;
}

let isReady = false;

/** The functions that only admission has. */
function prepare(): void {
  if (!isReady) registerAuthorizer(celEnvironment());
  isReady = true;
}

const compiled = new Map<string, Compiled | Error>();
/** Far more than a cluster's policies have; what is thrown out is only parsed again. */
const maxCompiled = 2000;

function compile(expression: string): Compiled | Error {
  let found = compiled.get(expression);
  if (!found) {
    prepare();
    if (compiled.size >= maxCompiled) compiled.clear();
    try {
      found = { evaluate: parseRule(expression) };
    } catch (error) {
      found = error instanceof Error ? error : new Error(String(error));
    }
    compiled.set(expression, found);
  }
  return found;
}

/** Why an expression is none; undefined when it is one. */
export function syntaxProblem(expression: string): string | undefined {
  const found = compile(expression);
  return found instanceof Error ? firstLine(found) : undefined;
}

/** The steps that an expression takes at least where nothing is known of the objects that it will see; 0 for what is none. */
export function costOf(expression: string): number {
  const found = compile(expression);
  return found instanceof Error ? 0 : estimatedCost(found.evaluate.ast);
}

/** Names whose members have types that only the original knows of. */
const typedNames = ["request", "variables", "namespaceObject", "authorizer"];

/** What type of value an expression gives; undefined when that is not known. */
export function resultType(expression: string): string | undefined {
  const found = compile(expression);
  if (found instanceof Error) return undefined;
  const { valid, type } = found.evaluate.check();
  if (!valid || type === undefined) return undefined;
  if (type === "dyn" && typedNames.some((name) => mentions(found.evaluate.ast, name)))
    return undefined;
  return type === "null" ? "null_type" : type;
}

/** The value of an expression. Throws an Error with the words of Kubernetes when it has none. */
export function evaluate(expression: string, bindings: Bindings, budget: Budget): unknown {
  const found = compile(expression);
  if (found instanceof Error) throw new Error(`compilation failed: ${firstLine(found)}`);
  if (budget.isSpent) {
    throw new Error(
      "validation failed due to running out of cost budget, no further validation rules will be run",
    );
  }
  try {
    return evaluateMetered(found.evaluate, bindings, budget);
  } catch (error) {
    throw new Error(`expression '${expression}' resulted in error: ${inWordsOfCel(error)}`, {
      cause: error,
    });
  }
}

function firstLine(error: Error): string {
  return error.message.split("\n")[0] ?? "";
}

/** The library's messages, as the original implementation of CEL words them. */
export function inWordsOfCel(error: unknown): string {
  const text = error instanceof Error ? firstLine(error) : String(error);
  if (text.startsWith("No such key: index out of bounds, index ")) {
    return `index out of bounds: ${/index (\d+) >=/.exec(text)?.[1]}`;
  }
  if (text.startsWith("No such key: ")) return `no such key: ${text.slice(13)}`;
  if (/^(?:no such overload|found no matching overload)/.test(text)) return "no such overload";
  return text;
}
