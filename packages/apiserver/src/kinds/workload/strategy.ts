import {
  deepEqual,
  type Deployment,
  type LabelSelector,
  selectorMatches,
  type UnknownObject,
} from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { validateLabels } from "../../resources/metadata.ts";
import { type Strategy } from "../../resources/resource-type.ts";
import { setPodSpecDefaults } from "../pod/spec.ts";
import {
  checkAmount,
  checkNotNegative,
  checkSelector,
} from "../../resources/validation/formats.ts";
import { podNameWarnings, podWarnings } from "../warnings.ts";
import { validatePodSpec } from "../pod/validation/spec.ts";

type Spec = NonNullable<Deployment["spec"]>;

/** `pkg/apis/apps/v1/defaults.go` and `pkg/apis/apps/validation`. */
export const deploymentStrategy: Strategy = {
  generation: true,
  generationOf: ["annotations"],
  defaults(object) {
    const spec = object.spec as Spec | undefined;
    if (!spec) return;
    spec.replicas ??= 1;
    spec.revisionHistoryLimit ??= 10;
    spec.progressDeadlineSeconds ??= 600;
    spec.strategy ??= {};
    spec.strategy.type ??= "RollingUpdate";
    if (spec.strategy.type === "RollingUpdate") {
      spec.strategy.rollingUpdate ??= {};
      spec.strategy.rollingUpdate.maxUnavailable ??= "25%";
      spec.strategy.rollingUpdate.maxSurge ??= "25%";
    }
    setTemplateDefaults(spec);
  },
  prepare: (object, { old }) => void (old ? undefined : (object.status = {})),
  warnings: templateWarnings,
  validate(object, errors, old, subresource) {
    if (subresource === "status") return validateStatus(object, errors);
    const spec = (object.spec ?? {}) as Spec;
    validateReplicated(spec, errors, old?.spec as Spec | undefined);
    validateStrategy(spec, errors);
    checkNotNegative(spec as Limits, ["minReadySeconds", "revisionHistoryLimit"], "spec", errors);
    const { progressDeadlineSeconds: deadline, minReadySeconds = 0 } = spec as Limits;
    if (deadline === undefined) return;
    const path = "spec.progressDeadlineSeconds";
    if (deadline < 0) errors.invalid(path, deadline, "must be greater than or equal to 0");
    if (deadline <= minReadySeconds)
      errors.invalid(path, deadline, "must be greater than minReadySeconds");
  },
};

interface Limits {
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
  progressDeadlineSeconds?: number;
}

const strategyTypes = ["Recreate", "RollingUpdate"];

function validateStrategy({ strategy }: Spec, errors: FieldErrors): void {
  const { type = "", rollingUpdate } = strategy ?? {};
  const path = "spec.strategy.rollingUpdate";
  if (type === "Recreate") {
    if (!rollingUpdate) return;
    return errors.forbidden(path, "may not be specified when strategy `type` is 'Recreate'");
  }
  if (type !== "RollingUpdate") {
    const shown = { Type: type, RollingUpdate: rollingUpdate ?? null };
    return errors.unsupported("spec.strategy", shown, strategyTypes);
  }
  const { maxUnavailable, maxSurge } = rollingUpdate ?? {};
  checkAmount(maxUnavailable, `${path}.maxUnavailable`, errors, false);
  checkAmount(maxSurge, `${path}.maxSurge`, errors, false);
  if (isZero(maxUnavailable) && isZero(maxSurge))
    errors.invalid(`${path}.maxUnavailable`, maxUnavailable, "may not be 0 when `maxSurge` is 0");
  checkPercent(maxUnavailable, `${path}.maxUnavailable`, errors);
}

function checkPercent(value: unknown, path: string, errors: FieldErrors): void {
  if (typeof value === "string" && /^\d+%$/.test(value) && Number.parseInt(value) > 100)
    errors.invalid(path, value, "must not be greater than 100%");
}

/** `ValidateDeploymentStatus`. */
function validateStatus(object: UnknownObject, errors: FieldErrors): void {
  const status = (object.status ?? {}) as Record<string, number | undefined>;
  const counts = [
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "collisionCount",
  ];
  checkNotNegative(status, counts, "status", errors);
  const { replicas = 0, readyReplicas = 0, availableReplicas = 0 } = status;
  for (const field of ["updatedReplicas", "readyReplicas", "availableReplicas"]) {
    const value = status[field] ?? 0;
    if (value > replicas)
      errors.invalid(`status.${field}`, value, "cannot be greater than status.replicas");
  }
  if (availableReplicas > readyReplicas) {
    const detail = "cannot be greater than readyReplicas";
    errors.invalid("status.availableReplicas", availableReplicas, detail);
  }
}

export const replicaSetStrategy: Strategy = {
  generation: true,
  defaults(object) {
    const spec = object.spec as Spec | undefined;
    if (!spec) return;
    spec.replicas ??= 1;
    setTemplateDefaults(spec);
  },
  prepare: (object, { old }) => void (old ? undefined : (object.status = { replicas: 0 })),
  warnings: templateWarnings,
  validate(object, errors, old, subresource) {
    if (subresource === "status") return;
    const spec = (object.spec ?? {}) as Spec;
    checkNotNegative(spec as Limits, ["minReadySeconds"], "spec", errors);
    validateReplicated(spec, errors, old?.spec as Spec | undefined);
  },
};

/** Of a template that is new, or that a write has changed. */
function templateWarnings(object: UnknownObject, old: UnknownObject | undefined): string[] {
  const template = (object.spec as Spec | undefined)?.template;
  if (old)
    return deepEqual(object.spec, old.spec) ? [] : podWarnings(template ?? {}, "spec.template");
  return [...podNameWarnings(object), ...podWarnings(template ?? {}, "spec.template")];
}

function setTemplateDefaults(spec: Spec): void {
  if (!spec.template) return;
  spec.template.metadata ??= {};
  setPodSpecDefaults(spec.template.spec);
}

function isZero(value: number | string | undefined): boolean {
  return value === 0 || value === "0%";
}

function validateReplicated(spec: Spec, errors: FieldErrors, before: Spec | undefined): void {
  checkNotNegative(spec, ["replicas"], "spec", errors);
  const selector = (spec.selector as LabelSelector | null) ?? undefined;
  const isGood = checkTemplateSelector(selector, errors);
  const { metadata, spec: podSpec } = spec.template ?? {};
  validateTemplate(metadata?.labels, selector, isGood, errors);
  validatePodSpec(podSpec, "spec.template.spec", errors, ["Always"]);
  const deadline = podSpec?.activeDeadlineSeconds;
  if (deadline !== undefined) {
    const detail = "activeDeadlineSeconds in ReplicaSet is not Supported";
    errors.forbidden("spec.template.spec.activeDeadlineSeconds", detail);
  }
  if (before && !deepEqual(before.selector, selector))
    errors.invalid("spec.selector", selector, "field is immutable");
}

function checkTemplateSelector(selector: LabelSelector | undefined, errors: FieldErrors): boolean {
  if (!selector) {
    errors.required("spec.selector");
    return true;
  }
  const isGood = checkSelector(selector, "spec.selector", errors);
  const isEmpty =
    Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions?.length ?? 0) === 0;
  if (isEmpty) errors.invalid("spec.selector", {}, "empty selector is invalid for deployment");
  if (!isGood) errors.invalid("spec.selector", selector, "invalid label selector");
  return isGood && !isEmpty;
}

function validateTemplate(
  labels: Record<string, string> | undefined,
  selector: LabelSelector | undefined,
  isGood: boolean,
  errors: FieldErrors,
): void {
  if (isGood && !selectorMatches(selector, labels)) {
    errors.invalid(
      "spec.template.metadata.labels",
      labels,
      "`selector` does not match template `labels`",
    );
  }
  validateLabels(labels, "spec.template.labels", errors);
}
