import { type Service } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { validateLabels } from "../resources/metadata.ts";
import { type Strategy } from "../resources/resource-type.ts";

const types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const protocols = ["SCTP", "TCP", "UDP"];
const portNamePattern = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** `pkg/apis/core/v1/defaults.go` and `validation.ValidateService`. */
export const serviceStrategy: Strategy = {
  nameRule: "service",
  selectableFields: ["spec.clusterIP", "spec.type"],
  defaults(object) {
    const { spec } = object as unknown as Service;
    if (!spec) return;
    spec.type ??= "ClusterIP";
    spec.sessionAffinity ??= "None";
    if (spec.type !== "ExternalName") spec.internalTrafficPolicy ??= "Cluster";
    if (spec.type === "NodePort" || spec.type === "LoadBalancer") {
      spec.externalTrafficPolicy ??= "Cluster";
    }
    for (const port of spec.ports ?? []) {
      port.protocol ??= "TCP";
      // Go programs send 0 (and an empty text) for one that nobody set.
      port.targetPort ||= port.port;
    }
  },
  prepare(object, { old }) {
    const service = object as unknown as Service;
    if (!old) object.status = { loadBalancer: {} };
    const before = (old as unknown as Service | undefined)?.spec;
    if (!before || !service.spec) return;
    // A client that leaves the address out means the one it has.
    if (service.spec.type === before.type) {
      for (const field of ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] as const) {
        if (!service.spec[field] && before[field]) {
          Object.assign(service.spec, { [field]: before[field] });
        }
      }
    }
  },
  validate(object, errors, old) {
    const { spec } = object as unknown as Service;
    if (!spec) return errors.required("spec");
    if (!types.includes(spec.type ?? "")) errors.unsupported("spec.type", spec.type, types);
    validatePorts(spec, errors);
    validateLabels(spec.selector, "spec.selector", errors);
    const before = (old as unknown as Service | undefined)?.spec;
    const wasSet = before?.clusterIP && before.type !== "ExternalName";
    if (wasSet && spec.type !== "ExternalName" && spec.clusterIP !== before.clusterIP) {
      errors.invalid("spec.clusterIPs[0]", [spec.clusterIP ?? ""], "may not change once set");
    }
  },
};

function validatePorts(spec: NonNullable<Service["spec"]>, errors: FieldErrors): void {
  const ports = spec.ports ?? [];
  if (ports.length === 0 && spec.clusterIP !== "None" && spec.type !== "ExternalName") {
    errors.required("spec.ports");
  }
  const names = new Set<string>();
  const taken = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const path = `spec.ports[${index}]`;
    if (!port.name && ports.length > 1) errors.required(`${path}.name`);
    if (port.name) {
      if (!portNamePattern.test(port.name)) {
        errors.invalid(
          `${path}.name`,
          port.name,
          "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        );
      }
      if (names.has(port.name)) errors.duplicate(`${path}.name`, port.name);
      names.add(port.name);
    }
    if (!isPort(port.port)) {
      errors.invalid(`${path}.port`, port.port ?? 0, "must be between 1 and 65535, inclusive");
    }
    if (!protocols.includes(port.protocol ?? "")) {
      errors.unsupported(`${path}.protocol`, port.protocol, protocols);
    }
    if (typeof port.targetPort === "number" && !isPort(port.targetPort)) {
      errors.invalid(
        `${path}.targetPort`,
        port.targetPort,
        "must be between 1 and 65535, inclusive",
      );
    }
    const key = `${port.protocol}/${port.port}`;
    if (taken.has(key)) errors.duplicate(path, { port: port.port, protocol: port.protocol });
    taken.add(key);
  }
}

export function isPort(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65535;
}
