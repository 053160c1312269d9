import { type PolicyRule, urlCovers } from "./policy-rule.ts";

/**
 * The rights of `wanted` that `held` does not hold, each as small a rule as there is: one verb on one
 * resource, name or path (`component-helpers/auth/rbac/validation`).
 */
export function uncovered(
  held: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): PolicyRule[] {
  return wanted.flatMap(smallestRules).filter((right) => !held.some((rule) => covers(rule, right)));
}

function smallestRules(rule: PolicyRule): PolicyRule[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames, nonResourceURLs = [] } = rule;
  const names = resourceNames?.length ? resourceNames.map((name) => [name]) : [undefined];
  const ofResources = apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) =>
        names.map((name) => ({
          apiGroups: [group],
          resources: [resource],
          verbs: [verb],
          ...(name && { resourceNames: name }),
        })),
      ),
    ),
  );
  const ofPaths = nonResourceURLs.flatMap((url) =>
    verbs.map((verb) => ({ nonResourceURLs: [url], verbs: [verb] })),
  );
  return [...ofResources, ...ofPaths];
}

function covers(rule: PolicyRule, right: PolicyRule): boolean {
  const names = rule.resourceNames ?? [];
  return (
    hasAll(rule.verbs, right.verbs) &&
    hasAll(rule.apiGroups, right.apiGroups) &&
    (right.resources ?? []).every((each) => hasResource(rule.resources ?? [], each)) &&
    (names.length === 0 ||
      (right.resourceNames?.length === 1 && names.includes(right.resourceNames[0] ?? ""))) &&
    (right.nonResourceURLs ?? []).every((url) =>
      (rule.nonResourceURLs ?? []).some((owned) => urlCovers(owned, url)),
    )
  );
}

function hasAll(held: readonly string[] = [], wanted: readonly string[] = []): boolean {
  return held.includes("*") || wanted.every((each) => held.includes(each));
}

function hasResource(held: readonly string[], wanted: string): boolean {
  if (held.includes("*") || held.includes(wanted)) return true;
  const slash = wanted.indexOf("/");
  return slash >= 0 && held.includes(`*${wanted.slice(slash)}`);
}

/** Rights on the same resource and name in one line each, in alphabetical order. */
export function describeRules(rights: readonly PolicyRule[]): string[] {
  const lines = new Map<string, { right: PolicyRule; verbs: string[] }>();
  for (const right of rights) {
    // Paths are not joined: each line is one path and one verb.
    const key = right.nonResourceURLs
      ? JSON.stringify(right)
      : JSON.stringify({ ...right, verbs: [] });
    const line = lines.get(key);
    if (line) line.verbs.push(...(right.verbs ?? []));
    else lines.set(key, { right, verbs: [...(right.verbs ?? [])] });
  }
  return [...lines.values()].map(({ right, verbs }) => describe({ ...right, verbs })).sort();
}

function describe({
  apiGroups,
  resources,
  nonResourceURLs,
  resourceNames,
  verbs,
}: PolicyRule): string {
  const parts = {
    APIGroups: apiGroups,
    Resources: resources,
    NonResourceURLs: nonResourceURLs,
    ResourceNames: resourceNames,
    Verbs: verbs,
  };
  const described = Object.entries(parts)
    .filter(([, list]) => list?.length)
    .map(([name, list]) => `${name}:${listed(list ?? [])}`);
  return `{${described.join(", ")}}`;
}

/** As Go prints a list of strings. */
export function listed(list: readonly string[]): string {
  return `[${list.map((each) => JSON.stringify(each)).join(" ")}]`;
}
