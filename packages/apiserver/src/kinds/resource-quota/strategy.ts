import { type Strategy } from "../../resources/resource-type.ts";
import { validateResourceQuota, validateStatus } from "./validation.ts";

/** `pkg/registry/core/resourcequota`. */
export const resourceQuotaStrategy: Strategy = {
  prepare(object, { old }) {
    if (!old) object.status = {};
  },
  validate(object, errors, old, subresource) {
    if (subresource === "status") validateStatus(object, errors);
    else validateResourceQuota(object, errors, old);
  },
};
