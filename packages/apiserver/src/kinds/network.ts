import { type Strategy } from "../resources/resource-type.ts";

interface Rule {
  ports?: { protocol?: string }[];
}
interface PolicySpec {
  podSelector?: object;
  policyTypes?: string[];
  ingress?: Rule[];
  egress?: Rule[];
}

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
  validate(object, errors) {
    const { policyTypes = [] } = (object.spec ?? {}) as PolicySpec;
    for (const [index, each] of policyTypes.entries()) {
      if (each !== "Ingress" && each !== "Egress") {
        errors.unsupported(`spec.policyTypes[${index}]`, each, ["Egress", "Ingress"]);
      }
    }
  },
};

export const ingressStrategy: Strategy = {
  generation: true,
  prepare: (object, { old }) => void (old ? undefined : (object.status = { loadBalancer: {} })),
};

interface EndpointSlice {
  addressType?: string;
  endpoints?: { addresses?: string[] }[] | null;
  ports?: { name?: string; protocol?: string }[];
}

const addressTypes = ["FQDN", "IPv4", "IPv6"];

/** `pkg/apis/discovery/v1/defaults.go` and `pkg/apis/discovery/validation`. */
export const endpointSliceStrategy: Strategy = {
  generation: true,
  generationOf: ["labels", "annotations"],
  defaults(object) {
    for (const port of (object as EndpointSlice).ports ?? []) {
      port.name ??= "";
      port.protocol ??= "TCP";
    }
  },
  validate(object, errors) {
    const { addressType, endpoints } = object as EndpointSlice;
    if (!addressType) errors.required("addressType");
    else if (!addressTypes.includes(addressType)) {
      errors.unsupported("addressType", addressType, addressTypes);
    }
    for (const [index, { addresses }] of (endpoints ?? []).entries()) {
      if (addresses?.length) continue;
      errors.required(`endpoints[${index}].addresses`, "must contain at least 1 address");
    }
  },
};
