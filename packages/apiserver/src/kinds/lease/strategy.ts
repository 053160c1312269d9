import { type Strategy } from "../../resources/resource-type.ts";

/** `pkg/apis/coordination/validation`. */
export const leaseStrategy: Strategy = {
  conditionalUpdate: true,
  validate(object, errors) {
    const { leaseDurationSeconds, leaseTransitions } = (object.spec ?? {}) as {
      leaseDurationSeconds?: number;
      leaseTransitions?: number;
    };
    if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
      errors.invalid("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0");
    }
    if (leaseTransitions !== undefined && leaseTransitions < 0) {
      const detail = "must be greater than or equal to 0";
      errors.invalid("spec.leaseTransitions", leaseTransitions, detail);
    }
  },
};
