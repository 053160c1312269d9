import { compareQuantities, type Container, labelKeyProblems, parseQuantity } from "@spry/kube";
import { type FieldErrors } from "../../../field-errors.ts";
import { checkDataKeyName } from "../../../resources/validation/data-key.ts";
import {
  checkName,
  checkOneOf,
  checkPort,
  checkPortName,
  checkProtocol,
} from "../../../resources/validation/formats.ts";
import { type Handler, validateHandler, validateProbe } from "./probe.ts";

/** `pkg/apis/core/validation`: what Pods run. */

const pullPolicies = ["Always", "IfNotPresent", "Never"];
const messagePolicies = ["File", "FallbackToLogsOnError"];
const seccompTypes = ["Localhost", "RuntimeDefault", "Unconfined"];
const envNamePattern = /^[^=\p{Cc}]+$/u;
const maxUserId = 2_147_483_647;
const probes = ["livenessProbe", "readinessProbe", "startupProbe"] as const;

interface Security {
  runAsUser?: number;
  runAsGroup?: number;
  fsGroup?: number;
  privileged?: boolean;
  allowPrivilegeEscalation?: boolean;
  seccompProfile?: { type?: string; localhostProfile?: string };
}

export type ContainerKind = "containers" | "initContainers";

/** `names` are those that are taken, and gets the container's own. */
export function validateContainer(
  container: Container,
  kind: ContainerKind,
  path: string,
  errors: FieldErrors,
  names: Set<string>,
  volumes: Set<string>,
): void {
  validateCommon(container, path, errors, volumes);
  const { name, restartPolicy } = container as Container & { restartPolicy?: string };
  if (kind === "initContainers")
    checkOneOf(restartPolicy, ["Always"], `${path}.restartPolicy`, errors);
  if (name && names.has(name)) errors.duplicate(`${path}.name`, name);
  names.add(name);
  const goesOn = kind === "containers" || restartPolicy === "Always";
  const { lifecycle } = container;
  if (!goesOn) {
    const detail = "may not be set for init containers without restartPolicy=Always";
    for (const field of ["lifecycle", ...probes] as const)
      if (container[field]) errors.forbidden(`${path}.${field}`, detail);
    return;
  }
  for (const hook of ["postStart", "preStop"] as const) {
    const handler = lifecycle?.[hook] as Handler | undefined;
    if (handler) validateHandler(handler, `${path}.lifecycle.${hook}`, errors);
  }
  for (const field of probes) {
    const probe = container[field];
    if (probe) validateProbe(probe, field !== "readinessProbe", `${path}.${field}`, errors);
  }
}

function validateCommon(
  container: Container,
  path: string,
  errors: FieldErrors,
  volumes: Set<string>,
): void {
  const { name, image, terminationMessagePolicy, imagePullPolicy } = container;
  if (!name) errors.required(`${path}.name`);
  else checkName(name, "label", `${path}.name`, errors);
  if (!image) errors.required(`${path}.image`);
  else if (image !== image.trim())
    errors.invalid(`${path}.image`, image, "must not have leading or trailing whitespace");
  checkOneOf(terminationMessagePolicy, messagePolicies, `${path}.terminationMessagePolicy`, errors);
  validatePorts(container, `${path}.ports`, errors);
  validateEnv(container, `${path}.env`, errors);
  validateEnvFrom(container, `${path}.envFrom`, errors);
  validateMounts(container, `${path}.volumeMounts`, errors, volumes);
  checkOneOf(imagePullPolicy, pullPolicies, `${path}.imagePullPolicy`, errors);
  validateResources(container, `${path}.resources`, errors);
  const security = (container as { securityContext?: Security }).securityContext;
  if (security) validateContainerSecurity(security, `${path}.securityContext`, errors);
}

function validatePorts({ ports = [] }: Container, path: string, errors: FieldErrors): void {
  const names = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const at = `${path}[${index}]`;
    const { name, containerPort, protocol } = port;
    const { hostPort } = port as { hostPort?: number };
    if (name) {
      const before = errors.all.length;
      checkPortName(name, `${at}.name`, errors);
      if (errors.all.length === before && names.has(name)) errors.duplicate(`${at}.name`, name);
      names.add(name);
    }
    if (!containerPort) errors.required(`${at}.containerPort`);
    else checkPort(containerPort, `${at}.containerPort`, errors);
    if (hostPort) checkPort(hostPort, `${at}.hostPort`, errors);
    checkProtocol(protocol, `${at}.protocol`, errors);
  }
}

const envFields = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
const keyed = /^metadata\.(?:labels|annotations)\['(.*)'\]$/;
type Env = NonNullable<Container["env"]>[number];

function validateEnv({ env = [] }: Container, path: string, errors: FieldErrors): void {
  for (const [index, { name, value, valueFrom }] of env.entries()) {
    const at = `${path}[${index}]`;
    if (!name) errors.required(`${at}.name`);
    else if (!envNamePattern.test(name)) {
      const detail =
        "a valid environment variable name must consist only of printable ASCII characters other than '='";
      errors.invalid(`${at}.name`, name, detail);
    }
    if (valueFrom) validateEnvSource(valueFrom, value, `${at}.valueFrom`, errors);
  }
}

function validateEnvSource(
  source: NonNullable<Env["valueFrom"]>,
  value: string | undefined,
  path: string,
  errors: FieldErrors,
): void {
  const { fieldRef, configMapKeyRef, secretKeyRef } = source;
  if (fieldRef) validateFieldRef(fieldRef.fieldPath, `${path}.fieldRef`, errors);
  for (const [name, reference] of Object.entries({ configMapKeyRef, secretKeyRef })) {
    if (!reference) continue;
    if (!reference.name) errors.required(`${path}.${name}.name`);
    if (!reference.key) errors.required(`${path}.${name}.key`);
    else checkDataKeyName(reference.key, `${path}.${name}.key`, errors);
  }
  const count = Object.values(source).filter(Boolean).length;
  if (count === 0) {
    errors.invalid(
      path,
      "",
      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
    );
  } else if (value) errors.invalid(path, "", "may not be specified when `value` is not empty");
  else if (count > 1)
    errors.invalid(path, "", "may not have more than one field specified at a time");
}

function validateFieldRef(fieldPath: string, path: string, errors: FieldErrors): void {
  if (!fieldPath) return errors.required(`${path}.fieldPath`);
  const [, key] = keyed.exec(fieldPath) ?? [];
  if (key !== undefined) {
    for (const problem of labelKeyProblems(key.toLowerCase()))
      errors.invalid(`${path}.fieldPath`, fieldPath, problem);
  } else if (!envFields.includes(fieldPath)) {
    const detail = `error converting fieldPath: field label not supported: ${fieldPath}`;
    errors.invalid(`${path}.fieldPath`, fieldPath, detail);
  }
}

function validateEnvFrom(container: Container, path: string, errors: FieldErrors): void {
  const { envFrom = [] } = container;
  for (const [index, { configMapRef, secretRef }] of envFrom.entries()) {
    const at = `${path}[${index}]`;
    for (const [field, reference] of Object.entries({ configMapRef, secretRef }))
      if (reference && !reference.name) errors.required(`${at}.${field}.name`);
    if (!configMapRef && !secretRef)
      errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`");
    else if (configMapRef && secretRef)
      errors.invalid(path, "", "may not have more than one field specified at a time");
  }
}

function validateMounts(
  { volumeMounts = [] }: Container,
  path: string,
  errors: FieldErrors,
  volumes: Set<string>,
): void {
  const taken = new Set<string>();
  for (const [index, { name, mountPath }] of volumeMounts.entries()) {
    const at = `${path}[${index}]`;
    if (!name) errors.required(`${at}.name`);
    if (!volumes.has(name)) errors.notFound(`${at}.name`, name ?? "");
    if (!mountPath) errors.required(`${at}.mountPath`);
    if (taken.has(mountPath)) errors.invalid(`${at}.mountPath`, mountPath, "must be unique");
    taken.add(mountPath);
  }
}

const containerResources = ["cpu", "memory", "ephemeral-storage"];
const standardResources = [
  ...containerResources,
  "storage",
  "pods",
  "services",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
];

function validateResources({ resources }: Container, path: string, errors: FieldErrors): void {
  const { limits = {}, requests = {} } = resources ?? {};
  for (const [field, amounts] of Object.entries({ limits, requests })) {
    for (const [name, amount] of Object.entries(amounts)) {
      const at = `${path}.${field}[${name}]`;
      validateResourceName(name, at, errors);
      if (parseQuantity(amount).nano < 0n)
        errors.invalid(at, amount, "must be greater than or equal to 0");
    }
  }
  for (const [name, request] of Object.entries(requests)) {
    const limit = limits[name];
    if (limit === undefined || compareQuantities(request, limit) <= 0) continue;
    const detail = `must be less than or equal to ${name} limit of ${limit}`;
    errors.invalid(`${path}.requests`, request, detail);
  }
}

function validateResourceName(name: string, path: string, errors: FieldErrors): void {
  const problems = labelKeyProblems(name);
  for (const problem of problems) errors.invalid(path, name, problem);
  if (name.includes("/") || name.startsWith("hugepages-")) return;
  if (problems.length === 0 && !standardResources.includes(name))
    errors.invalid(path, name, "must be a standard resource type or fully qualified");
  if (!containerResources.includes(name))
    errors.invalid(path, name, "must be a standard resource for containers");
}

function validateContainerSecurity(security: Security, path: string, errors: FieldErrors): void {
  validateSecurity(security, path, errors);
  const { privileged, allowPrivilegeEscalation } = security;
  if (allowPrivilegeEscalation !== false || !privileged) return;
  const detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
  errors.invalid(path, internalSecurity(security), detail);
}

/** What Pods and containers have in common. */
export function validateSecurity(security: Security, path: string, errors: FieldErrors): void {
  for (const field of ["runAsUser", "runAsGroup", "fsGroup"] as const) {
    const id = security[field];
    if (id !== undefined && (id < 0 || id > maxUserId))
      errors.invalid(`${path}.${field}`, id, `must be between 0 and ${maxUserId}, inclusive`);
  }
  const { seccompProfile } = security;
  if (!seccompProfile) return;
  const at = `${path}.seccompProfile`;
  const { type = "", localhostProfile } = seccompProfile;
  if (!seccompTypes.includes(type)) {
    if (type === "") errors.required(`${at}.type`, "type is required when seccompProfile is set");
    else errors.unsupported(`${at}.type`, type, seccompTypes);
  } else if (type === "Localhost" && !localhostProfile) {
    const detail = "must be set when seccomp type is Localhost";
    errors.required(`${at}.localhostProfile`, detail);
  } else if (type !== "Localhost" && localhostProfile !== undefined) {
    const detail = "can only be set when seccomp type is Localhost";
    errors.invalid(`${at}.localhostProfile`, localhostProfile, detail);
  }
}

/** As Go shows its own form of the structure. */
function internalSecurity(security: Security): object {
  const fields = [
    "Capabilities",
    "Privileged",
    "SELinuxOptions",
    "WindowsOptions",
    "RunAsUser",
    "RunAsGroup",
    "RunAsNonRoot",
    "ReadOnlyRootFilesystem",
    "AllowPrivilegeEscalation",
    "ProcMount",
    "SeccompProfile",
    "AppArmorProfile",
  ];
  const given = security as Record<string, unknown>;
  const key = (name: string) => name.charAt(0).toLowerCase() + name.slice(1);
  return Object.fromEntries(fields.map((name) => [name, given[key(name)] ?? null]));
}
