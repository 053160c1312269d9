import { type LabelSelector } from "@spry/kube";
import { type Store } from "../../store/store.ts";
import { type MatchCondition } from "../expressions/match-conditions.ts";
import { type MatchCriteria, type Rule } from "../matching.ts";

export interface MatchResources {
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  resourceRules?: Rule[];
  excludeResourceRules?: Rule[];
  matchPolicy?: "Exact" | "Equivalent";
}

export interface ParamKind {
  apiVersion: string;
  kind: string;
}

export interface ParamRef {
  name?: string;
  namespace?: string;
  selector?: LabelSelector;
  parameterNotFoundAction?: string;
}

export interface Validation {
  expression: string;
  message?: string;
  messageExpression?: string;
  reason?: string;
}

/** What both kinds of policy have. */
export interface PolicySpec {
  paramKind?: ParamKind;
  matchConstraints?: MatchResources;
  matchConditions?: MatchCondition[];
  variables?: { name: string; expression: string }[];
  failurePolicy?: "Fail" | "Ignore";
}

export interface ValidatingPolicySpec extends PolicySpec {
  validations?: Validation[];
  auditAnnotations?: { key: string; valueExpression: string }[];
}

export interface Mutation {
  patchType: string;
  applyConfiguration?: { expression: string };
  jsonPatch?: { expression: string };
}

export interface MutatingPolicySpec extends PolicySpec {
  mutations?: Mutation[];
  reinvocationPolicy?: "Never" | "IfNeeded";
}

export interface BindingSpec {
  policyName: string;
  paramRef?: ParamRef;
  matchResources?: MatchResources;
  validationActions?: string[];
}

/** A policy and what binds it. */
export interface BoundPolicy<S extends PolicySpec> {
  name: string;
  spec: S;
  bindings: { name: string; spec: BindingSpec }[];
}

const group = "admissionregistration.k8s.io";

/** Policies that are bound, in the order of their names. */
export function boundPolicies<S extends PolicySpec>(
  store: Store,
  kind: "validating" | "mutating",
): BoundPolicy<S>[] {
  const policies = store.list(`${group}/${kind}admissionpolicies`);
  if (policies.length === 0) return [];
  const bindings = store.list(`${group}/${kind}admissionpolicybindings`).map((stored) => ({
    name: stored.name,
    spec: (stored.object.spec ?? {}) as BindingSpec,
  }));
  return policies
    .map((stored) => ({
      name: stored.name,
      spec: (stored.object.spec ?? {}) as S,
      bindings: bindings.filter(({ spec }) => spec.policyName === stored.name),
    }))
    .filter((policy) => policy.bindings.length > 0);
}

/** Without rules, a binding is for all that its policy is for. */
export function criteriaOf(
  resources: MatchResources | undefined,
  isBinding: boolean,
): MatchCriteria {
  const { resourceRules = [], excludeResourceRules, matchPolicy = "Equivalent" } = resources ?? {};
  return {
    rules: resourceRules,
    allWithoutRules: isBinding,
    excluded: excludeResourceRules,
    matchPolicy,
    namespaceSelector: resources?.namespaceSelector,
    objectSelector: resources?.objectSelector,
  };
}
