import { type ParseResult } from "@marcbachmann/cel-js";
import { celEnvironment, parseRule } from "../../schema/cel-environment.ts";
import { registerAuthorizer } from "./cel-authorizer.ts";
import { longestList, mentions, nestedLoops } from "../../schema/cel-rules.ts";

/** What an expression can name; values as CEL has them. */
export type Bindings = Record<string, unknown>;

/** Steps that the expressions of one webhook or policy may take together for a request. */
export const costBudget = 5_000_000;

export class Budget {
  #left = costBudget;

  /** False when it is spent. */
  spend(cost: number): boolean {
    this.#left -= cost;
    return this.#left >= 0;
  }
}

interface Compiled {
  evaluate: ParseResult;
  loops: number;
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
      const evaluate = parseRule(expression);
      found = { evaluate, loops: nestedLoops(evaluate.ast) };
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
  if (!budget.spend(found.loops === 0 ? 1 : longestBinding(bindings) ** found.loops)) {
    throw new Error(
      "validation failed due to running out of cost budget, no further validation rules will be run",
    );
  }
  try {
    return found.evaluate(bindings);
  } catch (error) {
    throw new Error(`expression '${expression}' resulted in error: ${inWordsOfCel(error)}`, {
      cause: error,
    });
  }
}

function longestBinding(bindings: Bindings): number {
  const { variables: _, authorizer: __, ...values } = bindings;
  return Math.max(...Object.values(values).map(longestList));
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
