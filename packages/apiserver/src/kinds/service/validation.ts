import { type Service } from "@spry/kube";
import { isIP } from "node:net";
import { type FieldErrors } from "../../field-errors.ts";
import { validateLabels } from "../../resources/metadata.ts";
import {
  checkAddress,
  checkName,
  checkOneOf,
  checkPort,
  checkPortOrName,
  checkProtocol,
} from "../../resources/validation/formats.ts";

/** `pkg/apis/core/validation.ValidateService`. */

type Spec = NonNullable<Service["spec"]> & {
  externalIPs?: string[];
  internalTrafficPolicy?: string;
  externalTrafficPolicy?: string;
  ipFamilyPolicy?: string;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
};

const types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const traffic = ["Cluster", "Local"];
const maxAffinitySeconds = 86_400;

export function validateService(spec: Spec, errors: FieldErrors, before?: Spec): void {
  validateAddressChange(spec, before, errors);
  const { type = "", clusterIP = "", sessionAffinity = "", externalName } = spec;
  const isExternal = type === "ExternalName";
  const ports = spec.ports ?? [];
  if (ports.length === 0 && clusterIP !== "None" && !isExternal) errors.required("spec.ports");
  if (isExternal) {
    if (clusterIP !== "") {
      const detail = "may not be set for ExternalName services";
      errors.forbidden("spec.clusterIPs[0]", detail);
    }
    const host = externalName ?? "";
    if (host.replace(/\.$/, "") === "") errors.required("spec.externalName");
    else checkName(host.replace(/\.$/, ""), "subdomain", "spec.externalName", errors);
  }
  validatePorts(ports, errors);
  validateLabels(spec.selector, "spec.selector", errors);
  checkOneOf(sessionAffinity, ["ClientIP", "None"], "spec.sessionAffinity", errors);
  validateAffinity(spec, errors);
  if (!isExternal && clusterIP !== "" && clusterIP !== "None" && !isIP(clusterIP))
    checkAddress(clusterIP, "spec.clusterIPs[0]", errors);
  checkOneOf(spec.ipFamilyPolicy, policies, "spec.ipFamilyPolicy", errors);
  for (const [index, address] of (spec.externalIPs ?? []).entries())
    checkAddress(address, `spec.externalIPs[${index}]`, errors);
  if (type === "") errors.required("spec.type");
  else checkOneOf(type, types, "spec.type", errors);
  validateUniquePorts(ports, errors);
  validateNodePorts(spec, errors);
  checkOneOf(spec.internalTrafficPolicy, traffic, "spec.internalTrafficPolicy", errors);
  checkOneOf(spec.externalTrafficPolicy, traffic, "spec.externalTrafficPolicy", errors);
}

/** An address stays, unless a name outside takes its place. */
function validateAddressChange(spec: Spec, before: Spec | undefined, errors: FieldErrors): void {
  const wasSet = before?.clusterIP && before.type !== "ExternalName";
  if (!wasSet || spec.type === "ExternalName" || spec.clusterIP === before.clusterIP) return;
  errors.invalid("spec.clusterIPs[0]", [spec.clusterIP ?? ""], "may not change once set");
}

function validateAffinity(spec: Spec, errors: FieldErrors): void {
  const path = "spec.sessionAffinityConfig";
  const { clientIP } = spec.sessionAffinityConfig ?? {};
  if (spec.sessionAffinity !== "ClientIP") {
    if (spec.sessionAffinityConfig) {
      const detail = `must not be set when session affinity is ${spec.sessionAffinity}`;
      errors.forbidden(path, detail);
    }
    return;
  }
  const seconds = clientIP?.timeoutSeconds;
  if (seconds !== undefined && (seconds <= 0 || seconds > maxAffinitySeconds)) {
    const detail = `must be greater than 0 and less than ${maxAffinitySeconds}`;
    errors.invalid(`${path}.clientIP.timeoutSeconds`, seconds, detail);
  }
}

type Port = NonNullable<Spec["ports"]>[number];

function validatePorts(ports: Port[], errors: FieldErrors): void {
  const names = new Set<string>();
  for (const [index, { name = "", port, protocol, targetPort }] of ports.entries()) {
    const path = `spec.ports[${index}]`;
    if (name === "" && ports.length > 1) errors.required(`${path}.name`);
    else if (name !== "") {
      checkName(name, "label", `${path}.name`, errors);
      if (names.has(name)) errors.duplicate(`${path}.name`, name);
      names.add(name);
    }
    checkPort(port, `${path}.port`, errors);
    checkProtocol(protocol, `${path}.protocol`, errors);
    checkPortOrName(targetPort, `${path}.targetPort`, errors);
  }
}

function validateNodePorts(spec: Spec, errors: FieldErrors): void {
  const seen = new Set<string>();
  for (const [index, { nodePort, protocol }] of (spec.ports ?? []).entries()) {
    const path = `spec.ports[${index}].nodePort`;
    if (!nodePort) continue;
    if (spec.type === "ClusterIP")
      errors.forbidden(path, "may not be used when `type` is 'ClusterIP'");
    const key = `${protocol}/${nodePort}`;
    if (seen.has(key)) errors.duplicate(path, nodePort);
    seen.add(key);
  }
}

function validateUniquePorts(ports: Port[], errors: FieldErrors): void {
  const taken = new Set<string>();
  for (const [index, { port, protocol }] of ports.entries()) {
    const key = `${protocol}/${port}`;
    if (taken.has(key)) errors.duplicate(`spec.ports[${index}]`, { port, protocol });
    taken.add(key);
  }
}
