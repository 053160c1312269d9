import { type Service } from "@spry/kube";
import { type Strategy } from "../../resources/resource-type.ts";
import { serviceWarnings } from "../warnings.ts";
import { keepNodePorts } from "./node-ports.ts";
import { validateService } from "./validation.ts";

/** Seconds for which a client stays with its endpoint (`SetDefaults_Service`). */
const affinitySeconds = 10_800;

type Spec = NonNullable<Service["spec"]>;

/** Which types have a field that others do not. */
const typesOf = {
  externalTrafficPolicy: ["NodePort", "LoadBalancer"],
  allocateLoadBalancerNodePorts: ["LoadBalancer"],
  loadBalancerClass: ["LoadBalancer"],
  externalName: ["ExternalName"],
};

/** With another type go the fields that only the old one had, as long as the client leaves them as they were. */
function dropFieldsOfType(spec: Spec, old: Spec): void {
  const fields = spec as Record<string, unknown>;
  for (const [field, types] of Object.entries(typesOf)) {
    const had = types.includes(old.type ?? "");
    const isSame = fields[field] === (old as Record<string, unknown>)[field];
    if (had && !types.includes(spec.type ?? "") && isSame) delete fields[field];
  }
}

/** `pkg/apis/core/v1/defaults.go`, `pkg/registry/core/service`. */
export const serviceStrategy: Strategy = {
  nameRule: "label",
  selectableFields: ["spec.clusterIP", "spec.type"],
  defaults(object) {
    const { spec } = object as unknown as Service;
    if (!spec) return;
    spec.type ??= "ClusterIP";
    spec.sessionAffinity ??= "None";
    if (spec.type !== "ExternalName") spec.internalTrafficPolicy ??= "Cluster";
    if (spec.type === "LoadBalancer")
      Object.assign(spec, { allocateLoadBalancerNodePorts: true, ...spec });
    if (spec.sessionAffinity === "ClientIP")
      Object.assign(spec, {
        sessionAffinityConfig: { clientIP: { timeoutSeconds: affinitySeconds } },
        ...spec,
      });
    const { externalIPs = [] } = spec as { externalIPs?: string[] };
    const isOpen = spec.type !== "ExternalName" && externalIPs.length > 0;
    if (spec.type === "NodePort" || spec.type === "LoadBalancer" || isOpen) {
      spec.externalTrafficPolicy ??= "Cluster";
    }
    for (const port of spec.ports ?? []) {
      port.protocol ??= "TCP";
      // Go programs send 0 (and an empty string) for a field that was not set.
      port.targetPort ||= port.port ?? 0;
    }
  },
  prepare(object, { old }) {
    const service = object as unknown as Service;
    if (!old) object.status = { loadBalancer: {} };
    const before = (old as unknown as Service | undefined)?.spec;
    if (!before || !service.spec) return;
    keepNodePorts(service.spec, before);
    dropFieldsOfType(service.spec, before);
    // A client that leaves the address out means the one it has.
    if (service.spec.type === before.type) {
      for (const field of ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] as const) {
        if (!service.spec[field] && before[field]) {
          Object.assign(service.spec, { [field]: before[field] });
        }
      }
    }
  },
  warnings: serviceWarnings,
  validate(object, errors, old) {
    const before = (old as unknown as Service | undefined)?.spec;
    validateService((object as unknown as Service).spec ?? {}, errors, before);
  },
};
