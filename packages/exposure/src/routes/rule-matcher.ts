import { type ExposedRule } from "@spry/function";
import { wholeTextRegex } from "../regex.ts";
import { PathTrie } from "./path-trie.ts";

export type RuleMatch =
  | { kind: "rule"; rule: ExposedRule; index: number }
  /** No rule names the path: 404. */
  | { kind: "path" }
  /** Rules name the path, none with this method: 404, as in the original. */
  | { kind: "method" }
  /**
   * An earlier rule has taken this path from the rule that names the method: 403, as in the original
   * (`significance-of-rule-path-and-method-order.md`, step 4).
   */
  | { kind: "excluded" };

export const matchStatus = { path: 404, method: 404, excluded: 403 } as const;

export interface RuleMatcher {
  /** @param path as `requestPath` returns it */
  match(method: string, path: string): RuleMatch;
}

/** What operators of templates stand for; other characters only `/{**}` lets through. */
const templateText = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9a-fA-F]{2})*$/;

/** Finds the rule for a request: the first in the list that matches path and method. */
export function createRuleMatcher(rules: readonly ExposedRule[]): RuleMatcher {
  const trie = new PathTrie();
  const everything: number[] = [];
  const regexes: { index: number; regex: { test(text: string): boolean } }[] = [];
  for (const [index, { path }] of rules.entries()) {
    if (path.kind === "regex") regexes.push({ index, regex: wholeTextRegex(path.regex) });
    else if (path.template === "/{**}") everything.push(index);
    else trie.add(path.template, index);
  }
  return {
    match(method, path) {
      const found = templateText.test(path) ? trie.match(path) : [];
      found.push(...everything);
      for (const { index, regex } of regexes) if (regex.test(path)) found.push(index);
      if (found.length === 0) return { kind: "path" };
      if (found.length > 1) found.sort((a, b) => a - b);
      return first(rules, found, method);
    },
  };
}

/** @param found the indexes of the rules that match the path, in order */
function first(rules: readonly ExposedRule[], found: number[], method: string): RuleMatch {
  for (const [position, index] of found.entries()) {
    const rule = rules[index];
    if (!rule?.methods.includes(method)) continue;
    const isTaken = found.slice(0, position).some((earlier) => {
      const other = rules[earlier];
      return other !== undefined && takesPathFrom(other, rule);
    });
    return isTaken ? { kind: "excluded" } : { kind: "rule", rule, index };
  }
  return { kind: "method" };
}

/** Whether the paths of a rule are not a later one's: they share a method, and the path is not the same or everything. */
function takesPathFrom(earlier: ExposedRule, later: ExposedRule): boolean {
  if (earlier.path.kind === "regex" || later.path.kind === "regex") return false;
  const { template } = earlier.path;
  if (template === later.path.template || template === "/" || template === "/{**}") return false;
  return earlier.methods.some((method) => later.methods.includes(method));
}
