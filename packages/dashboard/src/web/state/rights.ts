/** What the user may do, according to the API server: nothing else is offered. The API server decides again with each request. */
import { type Signal, signal } from "@preact/signals";
import { client } from "../api/client.ts";

interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
}

/** The rights in one namespace; undefined until they are known. */
const known = new Map<string, Signal<Rule[] | undefined>>();

/**
 * Whether the user may do something in a namespace: yes until that is known, and where the API server does not report it. It
 * refuses what is not allowed.
 */
export function may(
  namespace: string,
  verb: string,
  resource: string,
  group = "serverless.kyma-project.io",
): boolean {
  const rules = rulesOf(namespace).value;
  if (!rules) return true;
  const has = (list: string[] | undefined, value: string) =>
    list?.includes(value) === true || list?.includes("*") === true;
  return rules.some(
    ({ verbs, apiGroups, resources, resourceNames = [] }) =>
      has(verbs, verb) &&
      has(apiGroups, group) &&
      has(resources, resource) &&
      resourceNames.length === 0,
  );
}

/** So many namespaces are asked about, one after the other, for a button. */
const maxAsked = 50;

/**
 * The namespace for something new: the shown one, or where all are shown the first in which the user may create it; undefined where
 * that is none.
 */
export function namespaceForNew(
  shown: string | undefined,
  namespaces: readonly string[],
  resource: string,
  group?: string,
): string | undefined {
  const names = [...new Set(namespaces)].sort();
  const candidates = shown === undefined ? ["default", ...names] : [shown];
  return candidates
    .slice(0, maxAsked)
    .find((namespace) => may(namespace, "create", resource, group));
}

function rulesOf(namespace: string): Signal<Rule[] | undefined> {
  let rules = known.get(namespace);
  if (!rules) {
    rules = signal(undefined);
    known.set(namespace, rules);
    void load(namespace, rules);
  }
  return rules;
}

async function load(namespace: string, rules: Signal<Rule[] | undefined>): Promise<void> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectRulesReview",
    spec: { namespace },
  };
  try {
    const response = await client.raw(
      "POST",
      "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
      { body: review },
    );
    const { status } = (await response.json()) as {
      status?: { resourceRules?: Rule[]; incomplete?: boolean };
    };
    if (status?.resourceRules && !status.incomplete) rules.value = status.resourceRules;
  } catch {
    // Without a response, everything is offered.
  }
}
