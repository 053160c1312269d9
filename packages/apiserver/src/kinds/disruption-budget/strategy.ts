import { type LabelSelector } from "@spry/kube";
import { type Strategy } from "../../resources/resource-type.ts";
import { checkAmount, checkOneOf, checkSelector } from "../../resources/validation/formats.ts";

interface BudgetSpec {
  minAvailable?: number | string;
  maxUnavailable?: number | string;
  selector?: LabelSelector;
  unhealthyPodEvictionPolicy?: string;
}

/** `pkg/registry/policy/poddisruptionbudget/strategy.go` and `pkg/apis/policy/validation`. */
export const disruptionBudgetStrategy: Strategy = {
  generation: true,
  conditionalUpdate: true,
  prepare(object, { old }) {
    if (old) return;
    object.status = {
      disruptionsAllowed: 0,
      currentHealthy: 0,
      desiredHealthy: 0,
      expectedPods: 0,
    };
  },
  validate(object, errors) {
    const spec = (object.spec ?? {}) as BudgetSpec;
    const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy } = spec;
    if (minAvailable !== undefined && maxUnavailable !== undefined) {
      const shown = {
        MinAvailable: minAvailable,
        Selector: selector ?? null,
        MaxUnavailable: maxUnavailable,
        UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null,
      };
      errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set");
    }
    checkAmount(minAvailable, "spec.minAvailable", errors);
    checkAmount(maxUnavailable, "spec.maxUnavailable", errors);
    checkSelector(selector, "spec.selector", errors);
    const policies = ["AlwaysAllow", "IfHealthyBudget"];
    checkOneOf(unhealthyPodEvictionPolicy, policies, "spec.unhealthyPodEvictionPolicy", errors);
  },
};
