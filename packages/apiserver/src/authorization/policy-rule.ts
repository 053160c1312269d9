import { type Attributes } from "./attributes.ts";

/** `rbac/v1 PolicyRule`, as a client may have written it. */
export interface PolicyRule {
  verbs?: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** Whether the rule allows it (`pkg/apis/rbac/v1`, evaluation helpers). */
export function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!has(rule.verbs, attributes.verb)) return false;
  if ("path" in attributes) {
    const { path } = attributes;
    return (rule.nonResourceURLs ?? []).some((url) => urlCovers(url, path));
  }
  const { group, resource, subresource, name } = attributes;
  if (!has(rule.apiGroups, group)) return false;
  if (rule.resourceNames?.length && !rule.resourceNames.includes(name)) return false;
  const combined = subresource ? `${resource}/${subresource}` : resource;
  return (rule.resources ?? []).some(
    (each) =>
      each === "*" || each === combined || (subresource !== "" && each === `*/${subresource}`),
  );
}

/** Whether a path or a pattern of paths lies within this one; a `*` may stand at the end. */
export function urlCovers(pattern: string, path: string): boolean {
  if (pattern === "*" || pattern === path) return true;
  return pattern.endsWith("*") && path.startsWith(pattern.replace(/\*+$/, ""));
}

function has(list: readonly string[] | undefined, wanted: string): boolean {
  return list?.some((each) => each === "*" || each === wanted) ?? false;
}
