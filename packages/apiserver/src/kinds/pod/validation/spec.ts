import { parseQuantity, type PodSpec } from "@spry/kube";
import { type FieldErrors } from "../../../field-errors.ts";
import { validateLabels } from "../../../resources/metadata.ts";
import { validateContainer, validateSecurity } from "./container.ts";
import { checkAddress, checkName } from "../../../resources/validation/formats.ts";
import {
  type Scheduling,
  validateAffinity,
  validateSpread,
  validateTolerations,
} from "./scheduling.ts";
import { validateVolumes } from "./volumes.ts";

const restartPolicies = ["Always", "OnFailure", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const maxSeconds = 2_147_483_647;

type Spec = PodSpec &
  Scheduling & {
    hostname?: string;
    subdomain?: string;
    hostAliases?: { ip: string; hostnames?: string[] }[];
    imagePullSecrets?: { name?: string }[];
    nodeSelector?: Record<string, string>;
    priorityClassName?: string;
  };

/**
 * `pkg/apis/core/validation.ValidatePodSpec`. `policies` are the restart policies that the owner's Pods can
 * have; without any a Pod can have all.
 */
export function validatePodSpec(
  given: PodSpec | undefined,
  path: string,
  errors: FieldErrors,
  policies?: readonly string[],
): void {
  const spec = (given ?? {}) as Spec;
  const volumes = validateVolumes(spec, path, errors);
  validateContainers(spec, path, errors, volumes);
  validatePolicies(spec, path, errors);
  validateLabels(spec.nodeSelector, `${path}.nodeSelector`, errors);
  const security = (spec as { securityContext?: object }).securityContext;
  if (security) validateSecurity(security, `${path}.securityContext`, errors);
  if (spec.affinity) validateAffinity(spec.affinity, `${path}.affinity`, errors);
  validateSpread(spec.topologySpreadConstraints, `${path}.topologySpreadConstraints`, errors);
  for (const [field, rule] of [
    ["serviceAccountName", "subdomain"],
    ["nodeName", "subdomain"],
  ] as const) {
    const name = spec[field];
    if (name) checkName(name, rule, `${path}.${field}`, errors);
  }
  const { activeDeadlineSeconds: deadline } = spec;
  if (deadline !== undefined && (deadline < 1 || deadline > maxSeconds)) {
    const detail = `must be between 1 and ${maxSeconds}, inclusive`;
    errors.invalid(`${path}.activeDeadlineSeconds`, deadline, detail);
  }
  for (const field of ["hostname", "subdomain"] as const) {
    const name = spec[field];
    if (name) checkName(name, "label", `${path}.${field}`, errors);
  }
  validateTolerations(spec.tolerations, `${path}.tolerations`, errors);
  for (const [index, alias] of (spec.hostAliases ?? []).entries()) {
    checkAddress(alias.ip ?? "", `${path}.hostAliases[${index}].ip`, errors);
    for (const [at, name] of (alias.hostnames ?? []).entries())
      checkName(name, "subdomain", `${path}.hostAliases[${index}].hostnames[${at}]`, errors);
  }
  const { priorityClassName } = spec;
  if (priorityClassName)
    checkName(priorityClassName, "subdomain", `${path}.priorityClassName`, errors);
  if (policies && !policies.includes(spec.restartPolicy ?? ""))
    errors.unsupported(`${path}.restartPolicy`, spec.restartPolicy ?? "", policies);
}

function validateContainers(
  spec: Spec,
  path: string,
  errors: FieldErrors,
  volumes: Set<string>,
): void {
  if (!spec.containers?.length) errors.required(`${path}.containers`);
  const names = new Set<string>();
  for (const kind of ["containers", "initContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries())
      validateContainer(container, kind, `${path}.${kind}[${index}]`, errors, names, volumes);
  }
}

function validatePolicies(spec: Spec, path: string, errors: FieldErrors): void {
  const { restartPolicy = "", dnsPolicy = "" } = spec;
  if (!restartPolicies.includes(restartPolicy))
    errors.unsupported(`${path}.restartPolicy`, restartPolicy, restartPolicies);
  if (!dnsPolicies.includes(dnsPolicy))
    errors.unsupported(`${path}.dnsPolicy`, dnsPolicy, dnsPolicies);
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
