import { type Strategy } from "../resources/resource-type.ts";
import { type EndpointSlice, validateSlice } from "../resources/validation/endpoint-slice.ts";
import { validateIngress } from "../resources/validation/ingress.ts";
import { type PolicySpec, validatePolicy } from "../resources/validation/network-policy.ts";

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

export const ingressStrategy: Strategy = {
  generation: true,
  prepare: (object, { old }) => void (old ? undefined : (object.status = { loadBalancer: {} })),
  validate: (object, errors) => validateIngress(object.spec ?? {}, errors),
};

/** `pkg/apis/discovery/v1/defaults.go`. */
export const endpointSliceStrategy: Strategy = {
  generation: true,
  generationOf: ["labels"],
  defaults(object) {
    for (const port of (object as EndpointSlice).ports ?? []) {
      port.name ??= "";
      port.protocol ??= "TCP";
    }
  },
  validate: (object, errors, old) =>
    validateSlice(object as EndpointSlice, errors, (old as EndpointSlice | undefined)?.addressType),
};
