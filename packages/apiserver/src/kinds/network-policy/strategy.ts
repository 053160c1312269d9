import { type Strategy } from "../../resources/resource-type.ts";
import { type PolicySpec, validatePolicy } from "./validation.ts";

/** `pkg/apis/networking/v1/defaults.go`. */
export const networkPolicyStrategy: Strategy = {
  generation: true,
  defaults(object) {
    const spec = object.spec as PolicySpec | undefined;
    if (!spec) return;
    spec.podSelector ??= {};
    for (const { ports } of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) {
      for (const port of ports ?? []) port.protocol ??= "TCP";
    }
    if (!spec.policyTypes?.length) {
      spec.policyTypes = spec.egress?.length ? ["Ingress", "Egress"] : ["Ingress"];
    }
  },
  validate: (object, errors) => validatePolicy(object.spec ?? {}, errors),
};
