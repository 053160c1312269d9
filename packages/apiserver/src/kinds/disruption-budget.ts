import { type Strategy } from "../resources/resource-type.ts";

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
    const spec = (object.spec ?? {}) as { minAvailable?: unknown; maxUnavailable?: unknown };
    if (spec.minAvailable === undefined || spec.maxUnavailable === undefined) return;
    const { minAvailable, maxUnavailable } = spec;
    errors.invalid(
      "spec",
      { minAvailable, maxUnavailable },
      "minAvailable and maxUnavailable cannot be both set",
    );
  },
};
