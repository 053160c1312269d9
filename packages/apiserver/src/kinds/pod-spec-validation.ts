import {
  compareQuantities,
  type Container,
  parseQuantity,
  type PodSpec,
  type Probe,
} from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { nameProblems } from "../resources/metadata.ts";
import { isPort } from "./service.ts";

const restartPolicies = ["Always", "OnFailure", "Never"];
const pullPolicies = ["Always", "IfNotPresent", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const protocols = ["SCTP", "TCP", "UDP"];
const portRange = "must be between 1 and 65535, inclusive";
const envNamePattern = /^[^=\p{Cc}]+$/u;

/** `pkg/apis/core/validation.ValidatePodSpec`, what the embedded engine's nodes rely on. */
export function validatePodSpec(
  spec: PodSpec | undefined,
  path: string,
  errors: FieldErrors,
  policies: readonly string[] = restartPolicies,
): void {
  if (!spec) return errors.required(path);
  const volumes = validateVolumes(spec, path, errors);
  if (!spec.containers?.length) errors.required(`${path}.containers`);
  const names = new Set<string>();
  for (const field of ["initContainers", "containers"] as const) {
    for (const [index, container] of (spec[field] ?? []).entries()) {
      validateContainer(container, `${path}.${field}[${index}]`, errors, names, volumes);
    }
  }
  if (!policies.includes(spec.restartPolicy ?? "")) {
    errors.unsupported(`${path}.restartPolicy`, spec.restartPolicy ?? "", policies);
  }
  if (!dnsPolicies.includes(spec.dnsPolicy ?? "")) {
    errors.unsupported(`${path}.dnsPolicy`, spec.dnsPolicy ?? "", dnsPolicies);
  }
  const { activeDeadlineSeconds, terminationGracePeriodSeconds = 0 } = spec;
  if (activeDeadlineSeconds !== undefined && activeDeadlineSeconds < 1) {
    errors.invalid(
      `${path}.activeDeadlineSeconds`,
      activeDeadlineSeconds,
      "must be between 1 and 2147483647, inclusive",
    );
  }
  if (terminationGracePeriodSeconds < 0) {
    errors.invalid(
      `${path}.terminationGracePeriodSeconds`,
      terminationGracePeriodSeconds,
      "must be greater than or equal to 0",
    );
  }
}

function validateVolumes(spec: PodSpec, path: string, errors: FieldErrors): Set<string> {
  const names = new Set<string>();
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    const at = `${path}.volumes[${index}]`;
    if (!volume.name) errors.required(`${at}.name`);
    else if (names.has(volume.name)) errors.duplicate(`${at}.name`, volume.name);
    else
      for (const problem of nameProblems(volume.name, "label"))
        errors.invalid(`${at}.name`, volume.name, problem);
    names.add(volume.name);
    const sources = Object.keys(volume).filter((key) => key !== "name");
    for (const extra of sources.slice(1)) {
      errors.forbidden(`${at}.${extra}`, "may not specify more than 1 volume type");
    }
    if (volume.secret && !volume.secret.secretName) errors.required(`${at}.secret.secretName`);
    if (volume.configMap && !volume.configMap.name) errors.required(`${at}.configMap.name`);
  }
  return names;
}

function validateContainer(
  container: Container,
  path: string,
  errors: FieldErrors,
  names: Set<string>,
  volumes: Set<string>,
): void {
  if (!container.name) errors.required(`${path}.name`);
  else if (names.has(container.name)) errors.duplicate(`${path}.name`, container.name);
  else
    for (const problem of nameProblems(container.name, "label"))
      errors.invalid(`${path}.name`, container.name, problem);
  names.add(container.name);
  if (!container.image) errors.required(`${path}.image`);
  else if (container.image !== container.image.trim()) {
    errors.invalid(
      `${path}.image`,
      container.image,
      "must not have leading or trailing whitespace",
    );
  }
  if (!pullPolicies.includes(container.imagePullPolicy ?? "")) {
    errors.unsupported(`${path}.imagePullPolicy`, container.imagePullPolicy, pullPolicies);
  }
  validatePorts(container, path, errors);
  for (const [index, { name, value, valueFrom }] of (container.env ?? []).entries()) {
    if (!name) errors.required(`${path}.env[${index}].name`);
    else if (!envNamePattern.test(name)) {
      errors.invalid(
        `${path}.env[${index}].name`,
        name,
        "a valid environment variable name must consist only of printable ASCII characters other than '='",
      );
    }
    if (value && valueFrom) {
      errors.invalid(
        `${path}.env[${index}].valueFrom`,
        "",
        "may not be specified when `value` is not empty",
      );
    }
  }
  const mounts = new Set<string>();
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const at = `${path}.volumeMounts[${index}]`;
    if (!mount.name) errors.required(`${at}.name`);
    else if (!volumes.has(mount.name))
      errors.all.push({
        field: `${at}.name`,
        reason: "FieldValueNotFound",
        message: `Not found: ${JSON.stringify(mount.name)}`,
      });
    if (!mount.mountPath) errors.required(`${at}.mountPath`);
    else if (mounts.has(mount.mountPath))
      errors.invalid(`${at}.mountPath`, mount.mountPath, "must be unique");
    mounts.add(mount.mountPath);
  }
  validateResources(container, `${path}.resources`, errors);
  for (const field of ["livenessProbe", "readinessProbe", "startupProbe"] as const) {
    if (container[field]) validateProbe(container[field], `${path}.${field}`, errors);
  }
}

function validatePorts(container: Container, path: string, errors: FieldErrors): void {
  const names = new Set<string>();
  for (const [index, port] of (container.ports ?? []).entries()) {
    const at = `${path}.ports[${index}]`;
    if (port.name) {
      if (names.has(port.name)) errors.duplicate(`${at}.name`, port.name);
      names.add(port.name);
    }
    if (port.containerPort === undefined) errors.required(`${at}.containerPort`);
    else if (!isPort(port.containerPort))
      errors.invalid(`${at}.containerPort`, port.containerPort, portRange);
    if (!protocols.includes(port.protocol ?? "")) {
      errors.unsupported(`${at}.protocol`, port.protocol, protocols);
    }
  }
}

function validateResources(container: Container, path: string, errors: FieldErrors): void {
  const { limits = {}, requests = {} } = container.resources ?? {};
  const invalid = new Set<string>();
  for (const [field, amounts] of Object.entries({ limits, requests })) {
    for (const [name, amount] of Object.entries(amounts)) {
      const problem = quantityProblem(amount);
      if (!problem) continue;
      invalid.add(name);
      errors.invalid(`${path}.${field}[${name}]`, amount, problem);
    }
  }
  for (const [name, request] of Object.entries(requests)) {
    const limit = limits[name];
    if (limit === undefined || invalid.has(name) || compareQuantities(request, limit) <= 0)
      continue;
    errors.invalid(
      `${path}.requests`,
      request,
      `must be less than or equal to ${name} limit of ${limit}`,
    );
  }
}

/** What is wrong with an amount; nothing when it is fine. */
export function quantityProblem(amount: unknown): string | undefined {
  try {
    if (parseQuantity(amount as string).nano < 0n) return "must be greater than or equal to 0";
    return undefined;
  } catch {
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  }
}

function validateProbe(probe: Probe, path: string, errors: FieldErrors): void {
  const handlers = (["exec", "httpGet", "tcpSocket", "grpc"] as const).filter(
    (each) => probe[each],
  );
  if (handlers.length === 0) errors.required(path, "must specify a handler type");
  for (const extra of handlers.slice(1)) {
    errors.forbidden(`${path}.${extra}`, "may not specify more than 1 handler type");
  }
  for (const field of [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  ] as const) {
    const value = probe[field];
    if (value !== undefined && value < 0)
      errors.invalid(`${path}.${field}`, value, "must be greater than or equal to 0");
  }
  const port = probe.httpGet?.port ?? probe.tcpSocket?.port;
  if (typeof port === "number" && !isPort(port)) {
    errors.invalid(`${path}.${probe.httpGet ? "httpGet" : "tcpSocket"}.port`, port, portRange);
  }
}
