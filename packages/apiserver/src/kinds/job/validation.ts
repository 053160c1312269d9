import { type Job, selectorMatches, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { validateLabels } from "../../resources/metadata.ts";
import { validatePodSpec } from "../pod/validation/spec.ts";
import { checkNotNegative, checkOneOf, checkSelector } from "../../resources/validation/formats.ts";

/** `pkg/apis/batch/validation`. */

export type JobSpec = NonNullable<Job["spec"]> & {
  backoffLimitPerIndex?: number;
  maxFailedIndexes?: number;
  podReplacementPolicy?: string;
  podFailurePolicy?: { rules?: FailureRule[] | null };
};
interface FailureRule {
  action?: string;
  onExitCodes?: object;
  onPodConditions?: object[];
}

export const uidLabel = "batch.kubernetes.io/controller-uid";
export const nameLabel = "batch.kubernetes.io/job-name";
const modes = ["NonIndexed", "Indexed"];
const replacements = ["Failed", "TerminatingOrFailed"];
const actions = ["Count", "FailIndex", "FailJob", "Ignore"];
const jobPolicies = ["OnFailure", "Never"];
const policyNames = jobPolicies.map((each) => JSON.stringify(each)).join(", ");
const counts = [
  "parallelism",
  "completions",
  "activeDeadlineSeconds",
  "backoffLimit",
  "ttlSecondsAfterFinished",
  "backoffLimitPerIndex",
  "maxFailedIndexes",
] as const;

export function validateJob(object: UnknownObject, errors: FieldErrors): void {
  const spec = (object.spec ?? {}) as JobSpec;
  validateGenerated(object, spec, errors);
  validateJobSpec(spec, "spec", errors);
  validateSelector(spec, errors);
}

export function validateSelector(spec: JobSpec, errors: FieldErrors): void {
  if (!spec.selector) errors.required("spec.selector");
  else if (!checkSelector(spec.selector, "spec.selector", errors)) return;
  checkMatches(spec, errors);
}

/** A generated selector selects exactly the Job's own Pods. */
function validateGenerated(object: UnknownObject, spec: JobSpec, errors: FieldErrors): void {
  if (spec.manualSelector || !spec.selector) return;
  const { uid = "", name = "" } = object.metadata;
  const labels = (spec.template?.metadata?.labels ?? {}) as Record<string, string>;
  const wanted = { "controller-uid": uid, "job-name": name, [uidLabel]: uid, [nameLabel]: name };
  for (const [key, value] of Object.entries(wanted)) {
    const path = `spec.template.metadata.labels[${key}]`;
    if (labels[key] === undefined) errors.required(path, `must be '${value}'`);
    else if (labels[key] !== value) errors.invalid(path, labels, `must be '${value}'`);
  }
  const isKnown = errors.all.length === 0 || checkQuietly(spec.selector);
  if (isKnown && !selectorMatches(spec.selector, wanted))
    errors.invalid("spec.selector", spec.selector, "`selector` not auto-generated");
}

function checkQuietly(selector: NonNullable<JobSpec["selector"]>): boolean {
  return (selector.matchExpressions ?? []).length === 0;
}

function checkMatches({ selector, template }: JobSpec, errors: FieldErrors): void {
  const labels = template?.metadata?.labels;
  if (selectorMatches(selector ?? undefined, labels)) return;
  const detail = "`selector` does not match template `labels`";
  errors.invalid("spec.template.metadata.labels", labels, detail);
}

export function validateJobSpec(spec: JobSpec, path: string, errors: FieldErrors): void {
  checkNotNegative(spec, counts, path, errors);
  checkOneOf(spec.completionMode, modes, `${path}.completionMode`, errors);
  validateIndexes(spec, path, errors);
  for (const [index, rule] of (spec.podFailurePolicy?.rules ?? []).entries())
    validateRule(spec, rule, `${path}.podFailurePolicy.rules[${index}]`, errors);
  checkOneOf(spec.podReplacementPolicy, replacements, `${path}.podReplacementPolicy`, errors);
  const { metadata, spec: podSpec } = spec.template ?? {};
  validateLabels(metadata?.labels, `${path}.template.labels`, errors);
  validatePodSpec(podSpec, `${path}.template.spec`, errors);
  const at = `${path}.template.spec.restartPolicy`;
  const policy = podSpec?.restartPolicy ?? "";
  // The default is none that a Job can have.
  if (policy === "" || policy === "Always") errors.required(at, `valid values: ${policyNames}`);
  else if (!jobPolicies.includes(policy)) errors.unsupported(at, policy, jobPolicies);
  else if (spec.podFailurePolicy && policy !== "Never") {
    const detail = 'only "Never" is supported when podFailurePolicy is specified';
    errors.invalid(at, policy, detail);
  }
}

function validateIndexes(spec: JobSpec, path: string, errors: FieldErrors): void {
  const { completionMode = "NonIndexed", completions, backoffLimitPerIndex } = spec;
  const { maxFailedIndexes } = spec;
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined)
    errors.required(`${path}.backoffLimitPerIndex`, "when maxFailedIndexes is specified");
  if (completionMode === "Indexed" && completions === undefined)
    errors.required(`${path}.completions`, "when completion mode is Indexed");
  if (completionMode !== "NonIndexed") return;
  for (const field of ["backoffLimitPerIndex", "maxFailedIndexes"] as const)
    if (spec[field] !== undefined)
      errors.invalid(`${path}.${field}`, spec[field], "requires indexed completion mode");
}

function validateRule(spec: JobSpec, rule: FailureRule, path: string, errors: FieldErrors): void {
  const { action = "", onExitCodes, onPodConditions = [] } = rule;
  if (action === "") {
    errors.required(
      `${path}.action`,
      `valid values: [${actions.map((each) => `"${each}"`).join(" ")}]`,
    );
  } else if (action === "FailIndex" && spec.backoffLimitPerIndex === undefined) {
    errors.invalid(`${path}.action`, action, "requires the backoffLimitPerIndex to be set");
  } else checkOneOf(action, actions, `${path}.action`, errors);
  const hasConditions = onPodConditions.length > 0;
  if (onExitCodes && hasConditions)
    errors.broken(path, "specifying both OnExitCodes and OnPodConditions is not supported");
  if (!onExitCodes && !hasConditions)
    errors.broken(path, "specifying one of OnExitCodes and OnPodConditions is required");
}
