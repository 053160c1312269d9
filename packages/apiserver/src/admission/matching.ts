import { type LabelSelector, selectorMatches, type UnknownObject } from "@spry/kube";
import { notFound } from "../errors.ts";
import { type Catalog } from "../resources/catalog.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { type Store } from "../store/store.ts";
import {
  type AdmissionAttributes,
  isNamespace,
  namespaceOf,
  type Operation,
} from "./attributes.ts";

/** `admissionregistration.k8s.io/v1 RuleWithOperations`; policies add names. */
export interface Rule {
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
  operations?: string[];
  scope?: string;
  resourceNames?: string[];
}

/** What a webhook or policy wants to see. */
export interface MatchCriteria {
  rules: Rule[];
  /** No rules at all mean everything, not nothing. */
  allWithoutRules?: boolean;
  /** Not to be seen although a rule says so. */
  excluded?: Rule[] | undefined;
  matchPolicy: "Exact" | "Equivalent" | undefined;
  namespaceSelector: LabelSelector | undefined;
  objectSelector: LabelSelector | undefined;
}

/**
 * Whether requests match what a webhook or policy wants to see
 * (`k8s.io/apiserver/pkg/admission/plugin/webhook/generic`).
 */
export class Matcher {
  readonly #store: Store;
  readonly #catalog: Catalog;

  constructor(store: Store, catalog: Catalog) {
    this.#store = store;
    this.#catalog = catalog;
  }

  /**
   * The version in which the request is wanted; undefined when it is not. A rule about another version
   * of the same resource counts when the policy is `Equivalent`.
   */
  match(criteria: MatchCriteria, attributes: AdmissionAttributes): ResourceType | undefined {
    const wanted = this.#byRules(criteria, attributes);
    if (!wanted) return undefined;
    const { objectSelector, namespaceSelector } = criteria;
    if (!this.#isNamespaceSelected(namespaceSelector, attributes)) return undefined;
    return isObjectSelected(objectSelector, attributes) ? wanted : undefined;
  }

  /** The Namespace that a request is in, as it will be after it. */
  namespaceFor(attributes: AdmissionAttributes): UnknownObject | undefined {
    const { request, object } = attributes;
    if (isNamespace(request.type) && !request.subresource && object) return object;
    const name = namespaceOf(attributes);
    if (!name) return undefined;
    return this.#store.get({ collection: "/namespaces", namespace: "", name })?.object;
  }

  #byRules(criteria: MatchCriteria, attributes: AdmissionAttributes): ResourceType | undefined {
    const { rules, excluded = [], matchPolicy } = criteria;
    const { type } = attributes.request;
    const candidates = [type];
    if (matchPolicy === "Equivalent") {
      if (rules.length > 0 && !rules.some((rule) => couldMatch(rule, attributes))) return undefined;
      candidates.push(...this.#equivalents(type));
    }
    const matches = (list: Rule[]) =>
      candidates.find((each) => list.some((rule) => ruleMatches(rule, each, attributes)));
    if (matches(excluded)) return undefined;
    return criteria.allWithoutRules && rules.length === 0 ? type : matches(rules);
  }

  #equivalents(type: ResourceType): ResourceType[] {
    return this.#catalog
      .all()
      .filter((each) => each !== type && each.collection === type.collection);
  }

  #isNamespaceSelected(
    selector: LabelSelector | undefined,
    attributes: AdmissionAttributes,
  ): boolean {
    if (isEmpty(selector)) return true;
    const name = namespaceOf(attributes);
    if (!name && !isNamespace(attributes.request.type)) return true;
    const namespace = this.namespaceFor(attributes);
    if (!namespace) throw notFound({ group: "", plural: "namespaces" }, name);
    return selectorMatches(selector, namespace.metadata.labels);
  }
}

function isObjectSelected(
  selector: LabelSelector | undefined,
  { object, old }: AdmissionAttributes,
): boolean {
  if (isEmpty(selector)) return true;
  return [object, old].some((each) => each && selectorMatches(selector, each.metadata.labels));
}

function isEmpty(selector: LabelSelector | undefined): boolean {
  if (!selector) return true;
  return Object.keys(selector.matchLabels ?? {}).length === 0 && !selector.matchExpressions?.length;
}

/** Cheap: leaves out rules for which no version would do, so that few requests look for versions. */
function couldMatch(rule: Rule, { operation }: AdmissionAttributes): boolean {
  return anyOf(rule.operations, operation);
}

function ruleMatches(rule: Rule, type: ResourceType, attributes: AdmissionAttributes): boolean {
  const { operation, request } = attributes;
  return (
    anyOf(rule.operations, operation satisfies Operation) &&
    anyOf(rule.apiGroups, type.group) &&
    anyOf(rule.apiVersions, type.version) &&
    inScope(rule.scope, type) &&
    (rule.resources ?? []).some((each) =>
      resourceMatches(each, type.plural, request.subresource),
    ) &&
    (!rule.resourceNames?.length || rule.resourceNames.includes(request.name))
  );
}

function inScope(scope: string | undefined, { namespaced }: ResourceType): boolean {
  return !scope || scope === "*" || scope === (namespaced ? "Namespaced" : "Cluster");
}

function anyOf(wanted: string[] | undefined, actual: string): boolean {
  return wanted !== undefined && (wanted.includes("*") || wanted.includes(actual));
}

/** `*` is every resource without its subresources, `*` + `/*` everything. */
function resourceMatches(pattern: string, plural: string, subresource: string): boolean {
  const [resource, sub = ""] = pattern.split("/");
  return (resource === "*" || resource === plural) && (sub === "*" || sub === subresource);
}
