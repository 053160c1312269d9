import { type ApiRuleRule } from "@spry/function";
import { PathTrie } from "../routes/path-trie.ts";
import { type Failure, failure } from "./failure.ts";

/** `{**}` once, and no operator after it (the original's `validateEnvoyTemplate`). */
export function validatePath(path: string, template: string): Failure[] {
  const operators = template.match(/\{\*{1,2}\}/g) ?? [];
  const globs = operators.filter((operator) => operator === "{**}").length;
  if (globs > 1) return [failure(path, "Only one {**} operator is allowed in the path.")];
  if (globs === 1 && operators.at(-1) !== "{**}")
    return [failure(path, "The {**} operator must be the last operator in the path.")];
  return [];
}

/** A rule that an earlier one with the same method hides completely. */
export function validateConflicts(rules: readonly ApiRuleRule[]): Failure[] {
  const earlier = new Map<string, PathTrie>();
  for (const [index, rule] of rules.entries()) {
    const path = rule.path === "/*" ? "/{**}" : rule.path;
    for (const method of rule.methods) {
      let trie = earlier.get(method);
      if (!trie) earlier.set(method, (trie = new PathTrie()));
      // A template is a path that its own operators, and wider ones, match.
      if (trie.match(path).length > 0) {
        const message = `Path ${path} with method ${method} conflicts with at least one of the previous rule paths`;
        return [failure("spec.rules", message)];
      }
      trie.add(path, index);
    }
  }
  return [];
}
