import {
  type LabelSelector,
  type MutatingWebhookConfiguration,
  selectorMatches,
  type UnknownObject,
  type ValidatingWebhookConfiguration,
} from "@spry/kube";
import { type ResourceRequest } from "../engine.ts";
import { type Store } from "../store/store.ts";
import { type Operation } from "./admission.ts";

interface Rule {
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
  operations?: string[];
  scope?: string;
}

/** One webhook of a Mutating- or ValidatingWebhookConfiguration, with the defaults in. */
export interface Webhook {
  name: string;
  clientConfig: {
    url?: string;
    caBundle?: string;
    service?: { namespace: string; name: string; path?: string; port?: number };
  };
  rules?: Rule[];
  failurePolicy?: "Fail" | "Ignore";
  matchPolicy?: "Exact" | "Equivalent";
  timeoutSeconds?: number;
  sideEffects?: string;
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  matchConditions?: { name: string; expression: string }[];
  admissionReviewVersions?: string[];
}

export type WebhookPhase = "mutating" | "validating";

/** The webhooks of a phase, configurations in the order of their names. */
export function webhooksOf(store: Store, phase: WebhookPhase): Webhook[] {
  const collection = `admissionregistration.k8s.io/${phase}webhookconfigurations`;
  return store.list(collection).flatMap(({ object }) => {
    const { webhooks } = object as unknown as
      | MutatingWebhookConfiguration
      | ValidatingWebhookConfiguration;
    return (webhooks ?? []) as unknown as Webhook[];
  });
}

/** Whether a webhook wants to see this request. Its match conditions are not looked at here. */
export function concerns(
  webhook: Webhook,
  request: ResourceRequest,
  operation: Operation,
  objects: (UnknownObject | undefined)[],
  store: Store,
): boolean {
  const { type, subresource, namespace, name } = request;
  // A broken webhook must not stand in the way of removing it.
  if (type.group === "admissionregistration.k8s.io") return false;
  if (!(webhook.rules ?? []).some((rule) => ruleMatches(rule, request, operation))) return false;
  const selector = webhook.objectSelector ?? {};
  if (!objects.some((object) => object && selectorMatches(selector, object.metadata.labels))) {
    return false;
  }
  const namespaceName = type.collection === "/namespaces" && !subresource ? name : namespace;
  if (!namespaceName) return true;
  const found =
    type.collection === "/namespaces"
      ? objects.find((object) => object !== undefined)
      : store.get({ collection: "/namespaces", namespace: "", name: namespaceName })?.object;
  return selectorMatches(webhook.namespaceSelector ?? {}, found?.metadata.labels);
}

/** Versions are taken as equivalent: an object of one is an object of the other. */
function ruleMatches(
  rule: Rule,
  { type, subresource }: ResourceRequest,
  operation: Operation,
): boolean {
  const scope = type.namespaced ? "Namespaced" : "Cluster";
  const { apiGroups = [], apiVersions = [], operations = [], resources = [] } = rule;
  return (
    anyOf(operations, operation) &&
    anyOf(apiGroups, type.group) &&
    anyOf(apiVersions, type.version) &&
    (!rule.scope || rule.scope === "*" || rule.scope === scope) &&
    resources.some((each) => resourceMatches(each, type.plural, subresource))
  );
}

function anyOf(wanted: string[], actual: string): boolean {
  return wanted.includes("*") || wanted.includes(actual);
}

function resourceMatches(pattern: string, plural: string, subresource: string): boolean {
  const [resource, sub = ""] = pattern.split("/");
  if (resource !== "*" && resource !== plural) return false;
  if (pattern === "*/*" || sub === "*") return true;
  return sub === subresource;
}
