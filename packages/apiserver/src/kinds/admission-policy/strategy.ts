import {
  type BindingSpec,
  type MatchResources,
  type ValidatingPolicySpec,
} from "../../admission/policies/policy.ts";
import { type Strategy } from "../../resources/resource-type.ts";
import { validateBinding, validatePolicy } from "./validation.ts";

/** `pkg/registry/admissionregistration`. */
export const validatingPolicyStrategy: Strategy = {
  generation: true,
  defaults(object) {
    const spec = object.spec as ValidatingPolicySpec | undefined;
    if (!spec) return;
    spec.failurePolicy ??= "Fail";
    setMatchDefaults(spec.matchConstraints);
  },
  prepare(object, { old, subresource }) {
    if (!old) object.status = {};
    else if (subresource !== "status") object.status = old.status;
  },
  validate(object, errors) {
    validatePolicy(object.spec ?? {}, object.metadata.name ?? "", errors);
  },
};

export const validatingPolicyBindingStrategy: Strategy = {
  generation: true,
  defaults: (object) => setMatchDefaults((object.spec as BindingSpec | undefined)?.matchResources),
  validate: (object, errors) => validateBinding((object.spec ?? {}) as BindingSpec, errors),
};

function setMatchDefaults(resources: MatchResources | undefined): void {
  if (!resources) return;
  resources.matchPolicy ??= "Equivalent";
  resources.namespaceSelector ??= {};
  resources.objectSelector ??= {};
  for (const rule of [
    ...(resources.resourceRules ?? []),
    ...(resources.excludeResourceRules ?? []),
  ]) {
    rule.scope ??= "*";
  }
}
