import {
  type Configuration,
  knativeAnnotations,
  knativeLabels,
  type KService,
  type RevisionTemplate,
} from "@spry/function";
import { deepEqual, type KubeObject, mergePatchBetween, type ObjectMeta } from "@spry/kube";
import { type Annotations, find, servingKeys } from "../annotations.ts";
import { type AutoscalerSettings } from "../settings/autoscaler-settings.ts";
import { isQuantity } from "../settings/config-reader.ts";
import { parseDuration } from "../settings/duration.ts";
import { checkAutoscaling } from "./autoscaling-annotations.ts";
import { FieldErrors } from "./field-error.ts";
import { label1035PrefixProblems, label1035Problems } from "./names.ts";

const sidecarResources = ["cpu", "memory", "ephemeral-storage"].flatMap((name) =>
  ["request", "limit"].map((kind) => `queue.sidecar.serving.knative.dev/${name}-resource-${kind}`),
);
const percentageKeys = [
  "queue.sidecar.serving.knative.dev/resource-percentage",
  "queue.sidecar.serving.knative.dev/resourcePercentage",
];

/** Names must be usable as the first label of a host (`apis.ValidateObjectMetadata`). */
export function checkNames({ name = "", generateName = "" }: ObjectMeta): FieldErrors {
  const errors = new FieldErrors();
  const prefixProblems = generateName ? label1035PrefixProblems(generateName) : undefined;
  const problems = name ? label1035Problems(name) : undefined;
  if (prefixProblems)
    return errors.add(`not a DNS 1035 label prefix: ${prefixProblems}`, "generateName");
  if (problems) return errors.add(`not a DNS 1035 label: ${problems}`, "name");
  if (!name && !generateName) errors.add("name or generateName is required", "name");
  return errors;
}

/** A label that names an owner must match the real owner. */
export function checkOwnerLabel(object: KubeObject, label: string, kind: string): FieldErrors {
  const value = object.metadata.labels?.[label];
  const owners = object.metadata.ownerReferences ?? [];
  const isTrue = owners.some((owner) => owner.kind === kind && owner.name === value);
  return value === undefined || isTrue ? new FieldErrors() : new FieldErrors().missing(label);
}

export function checkRolloutDuration(annotations: Annotations | undefined): FieldErrors {
  return checkSeconds(annotations, servingKeys.rolloutDuration, "rollout-duration");
}

function checkSeconds(
  annotations: Annotations | undefined,
  keys: readonly string[],
  name: string,
): FieldErrors {
  const errors = new FieldErrors();
  const found = find(annotations, keys);
  if (!found?.value) return errors;
  const ms = parseDuration(found.value);
  if (ms === undefined) errors.invalid(found.value, found.key);
  else if (ms % 1000 !== 0)
    errors.add(`${name}=${found.value} is not at second precision`, found.key);
  else if (ms < 0) errors.add(`${name}=${found.value} must be positive`, found.key);
  return errors;
}

/** The metadata of a template. `parent` is the name that a Revision's own name has to begin with. */
export function checkTemplateMetadata(
  { metadata }: RevisionTemplate,
  parent: string,
  settings: AutoscalerSettings,
): FieldErrors {
  const errors = new FieldErrors();
  const { name, annotations } = metadata ?? {};
  const place = "metadata.annotations";
  errors.via(place, checkAutoscaling(annotations, settings));
  errors.via(place, checkSeconds(annotations, servingKeys.progressDeadline, "progress-deadline"));
  for (const key of sidecarResources) {
    const value = annotations?.[key];
    if (value !== undefined && !isQuantity(value)) errors.invalid(value, `${place}[${key}]`);
  }
  const percentage = find(annotations, percentageKeys);
  if (percentage) {
    const value = Number(percentage.value);
    const at = `${place}[${percentage.key}]`;
    if (percentage.value.trim() === "" || !Number.isFinite(value))
      errors.invalid(percentage.value, at);
    else if (value < 0.1 || value > 100) errors.outOfBounds(value, 0.1, 100, at);
  }
  if (!name) return errors;
  const problems = label1035Problems(name);
  if (problems) errors.invalid(`not a DNS 1035 label: ${problems}`, "metadata.name");
  else if (parent && !name.startsWith(`${parent}-`))
    errors.invalid(
      `${JSON.stringify(name)} must have prefix ${JSON.stringify(`${parent}-`)}`,
      "metadata.name",
    );
  return errors;
}

/** Who brings a name for the Revision brings another one with each change. */
export function checkNameChange(
  { spec: { template } }: KService | Configuration,
  { spec: { template: before } }: KService | Configuration,
): FieldErrors {
  const errors = new FieldErrors();
  const name = template?.metadata?.name;
  if (!name || name !== before?.metadata?.name || deepEqual(template, before)) return errors;
  return errors.add(
    "Saw the following changes without a name change (-old +new)",
    "metadata.name",
    differenceOf(before, template),
  );
}

const maxDifference = 4096;

/** What changed, in a readable form: the merge patch from one to the other. */
export function differenceOf(before: unknown, after: unknown): string {
  return (JSON.stringify(mergePatchBetween(before, after)) ?? "").slice(0, maxDifference);
}

const { creator, lastModifier } = knativeAnnotations;

/** The annotations that say who wrote the object are the webhook's to set (`apis.ValidateCreatorAndModifier`). */
export function checkUserInfo(
  object: KubeObject & { spec: unknown },
  before: KubeObject & { spec: unknown },
): FieldErrors {
  const errors = new FieldErrors();
  const { annotations: now } = object.metadata;
  const { annotations: then } = before.metadata;
  if (now?.[creator] !== then?.[creator]) errors.add("annotation value is immutable", creator);
  if (deepEqual(object.spec, before.spec) && now?.[lastModifier] !== then?.[lastModifier])
    errors.invalid(now?.[lastModifier] ?? "", lastModifier);
  return errors;
}

/** The object's annotations with the user who writes it. */
export function withUserInfo(
  object: KubeObject & { spec: unknown },
  before: (KubeObject & { spec: unknown }) | undefined,
  user: string | undefined,
): Record<string, string> | undefined {
  const { annotations } = object.metadata;
  if (!user) return annotations;
  if (!before) return { ...annotations, [creator]: user, [lastModifier]: user };
  if (deepEqual(before.spec, object.spec)) return annotations;
  return { ...annotations, [lastModifier]: user };
}

export const ownerLabels = {
  service: (object: KubeObject) => checkOwnerLabel(object, knativeLabels.service, "Service"),
  configuration: (object: KubeObject) =>
    checkOwnerLabel(object, knativeLabels.configuration, "Configuration"),
};
