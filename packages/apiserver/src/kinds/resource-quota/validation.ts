import { isLabelKey, parseQuantity, type ScopeRequirement, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { qualifiedNameDetail } from "../../resources/metadata.ts";
import {
  isQuotaResource,
  isStandardResource,
  wholeResources,
} from "../../admission/resource-names.ts";

interface Spec {
  hard?: Record<string, string>;
  scopes?: string[];
  scopeSelector?: { matchExpressions?: ScopeRequirement[] };
}

const podScopes = [
  "Terminating",
  "NotTerminating",
  "NotBestEffort",
  "PriorityClass",
  "CrossNamespacePodAffinity",
];
const scopes = new Set([...podScopes, "BestEffort", "VolumeAttributesClass"]);
const conflicts = [
  ["BestEffort", "NotBestEffort"],
  ["Terminating", "NotTerminating"],
];

/** `pkg/apis/core/validation`. */
export function validateResourceQuota(
  object: UnknownObject,
  errors: FieldErrors,
  old: UnknownObject | undefined,
): void {
  const spec = (object.spec ?? {}) as Spec;
  validateList(spec.hard, "spec.hard", errors);
  validateScopes(spec, errors);
  validateSelector(spec, errors);
  const before = (old?.spec as Spec | undefined)?.scopes ?? [];
  const now = spec.scopes ?? [];
  if (
    old &&
    (before.some((each) => !now.includes(each)) || now.some((each) => !before.includes(each)))
  ) {
    errors.invalid("spec.scopes", now, "field is immutable");
  }
}

export function validateStatus({ status }: UnknownObject, errors: FieldErrors): void {
  const { hard, used } = (status ?? {}) as {
    hard?: Record<string, string>;
    used?: Record<string, string>;
  };
  validateList(hard, "status.hard", errors);
  validateList(used, "status.used", errors);
}

function validateList(
  list: Record<string, string> | undefined,
  path: string,
  errors: FieldErrors,
): void {
  for (const [name, text] of Object.entries(list ?? {})) {
    const at = `${path}[${name}]`;
    const isKey = isLabelKey(name);
    if (!isKey) errors.invalid(at, name, qualifiedNameDetail);
    if (!name.includes("/")) {
      if (isKey && !isStandardResource(name)) {
        errors.invalid(at, name, "must be a standard resource type or fully qualified");
      }
      if (!isQuotaResource(name)) errors.invalid(at, name, "must be a standard resource for quota");
    }
    const { nano } = parseQuantity(text);
    if (nano < 0n) errors.invalid(at, text, "must be greater than or equal to 0");
    const isWhole = wholeResources.has(name);
    if (isWhole && nano % 1_000_000_000n !== 0n) errors.invalid(at, text, "must be an integer");
  }
}

function validateScopes({ scopes: named = [], hard = {} }: Spec, errors: FieldErrors): void {
  const path = "spec.scopes";
  for (const scope of named) {
    if (!scopes.has(scope)) errors.invalid(path, named, "unsupported scope");
    for (const name of Object.keys(hard).sort()) {
      if (isQuotaResource(name) && !isValidFor(scope, name)) {
        errors.invalid(path, named, "unsupported scope applied to resource");
      }
    }
  }
  if (conflicts.some((pair) => pair.every((each) => named.includes(each)))) {
    errors.invalid(path, named, "conflicting scopes");
  }
}

const podOnly = ["cpu", "memory", "ephemeral-storage"].flatMap((name) => [
  name,
  `requests.${name}`,
  `limits.${name}`,
]);

function isValidFor(scope: string, name: string): boolean {
  if (podScopes.includes(scope)) return name === "pods" || podOnly.includes(name);
  if (scope === "BestEffort") return name === "pods";
  if (scope === "VolumeAttributesClass")
    return name === "persistentvolumeclaims" || name === "requests.storage";
  return true;
}

function validateSelector(
  { scopeSelector, hard = {}, scopes: named }: Spec,
  errors: FieldErrors,
): void {
  const path = "spec.scopeSelector.matchExpressions";
  const expressions = scopeSelector?.matchExpressions ?? [];
  for (const { scopeName, operator, values = [] } of expressions) {
    if (!scopes.has(scopeName)) errors.invalid(`${path}.scopeName`, scopeName, "unsupported scope");
    for (const name of Object.keys(hard).sort()) {
      if (isQuotaResource(name) && !isValidFor(scopeName, name)) {
        errors.invalid(path, scopeSelector, "unsupported scope applied to resource");
      }
    }
    const isPlain = scopeName !== "PriorityClass" && scopeName !== "VolumeAttributesClass";
    if (scopes.has(scopeName) && isPlain && operator !== "Exists") {
      errors.invalid(
        `${path}.operator`,
        operator,
        "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
      );
    }
    if (operator === "In" || operator === "NotIn") {
      if (values.length === 0) {
        errors.required(
          `${path}.values`,
          "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        );
      }
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      if (values.length > 0) {
        errors.invalid(
          `${path}.values`,
          values,
          "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        );
      }
    } else errors.invalid(`${path}.operator`, operator, "not a valid selector operator");
  }
  const present = expressions.map(({ scopeName }) => scopeName);
  if (conflicts.some((pair) => pair.every((each) => present.includes(each)))) {
    errors.invalid(path, named, "conflicting scopes");
  }
}
