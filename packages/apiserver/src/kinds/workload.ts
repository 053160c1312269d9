import { deepEqual, type Deployment, type LabelSelector, selectorMatches } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { validateLabels } from "../resources/metadata.ts";
import { type Strategy } from "../resources/resource-type.ts";
import { setPodSpecDefaults } from "./pod-spec.ts";
import { validatePodSpec } from "./pod-spec-validation.ts";

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
  validate(object, errors, old) {
    const spec = object.spec as Spec | undefined;
    validateReplicated(spec, errors, old?.spec as Spec | undefined);
    if (!spec) return;
    const { type, rollingUpdate } = spec.strategy ?? {};
    if (type !== "RollingUpdate" && type !== "Recreate") {
      const strategy = { Type: type ?? "", RollingUpdate: rollingUpdate ?? null };
      errors.unsupported("spec.strategy", strategy, ["Recreate", "RollingUpdate"]);
    }
    if (type === "Recreate" && rollingUpdate) {
      errors.forbidden(
        "spec.strategy.rollingUpdate",
        "may not be specified when strategy `type` is 'Recreate'",
      );
    }
    for (const field of ["maxUnavailable", "maxSurge"] as const) {
      const value = rollingUpdate?.[field];
      const valid = typeof value === "number" ? value >= 0 : /^\d+%$/.test(value ?? "0%");
      if (!valid)
        errors.invalid(
          `spec.strategy.rollingUpdate.${field}`,
          value,
          "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        );
    }
    if (isZero(rollingUpdate?.maxUnavailable) && isZero(rollingUpdate?.maxSurge)) {
      errors.invalid(
        "spec.strategy.rollingUpdate.maxUnavailable",
        rollingUpdate?.maxUnavailable,
        "may not be 0 when `maxSurge` is 0",
      );
    }
  },
};

export const replicaSetStrategy: Strategy = {
  generation: true,
  defaults(object) {
    const spec = object.spec as Spec | undefined;
    if (!spec) return;
    spec.replicas ??= 1;
    setTemplateDefaults(spec);
  },
  prepare: (object, { old }) => void (old ? undefined : (object.status = { replicas: 0 })),
  validate(object, errors, old) {
    validateReplicated(object.spec as Spec | undefined, errors, old?.spec as Spec | undefined);
  },
};

function setTemplateDefaults(spec: Spec): void {
  if (!spec.template) return;
  spec.template.metadata ??= {};
  setPodSpecDefaults(spec.template.spec);
}

function isZero(value: number | string | undefined): boolean {
  return value === 0 || value === "0%";
}

function validateReplicated(
  spec: Spec | undefined,
  errors: FieldErrors,
  before: Spec | undefined,
): void {
  if (!spec) return errors.required("spec");
  if ((spec.replicas ?? 0) < 0) {
    errors.invalid("spec.replicas", spec.replicas, "must be greater than or equal to 0");
  }
  const selector = (spec.selector as LabelSelector | null) ?? undefined;
  if (!selector) errors.required("spec.selector");
  else if (!selector.matchLabels && !selector.matchExpressions?.length) {
    errors.invalid("spec.selector", selector, "empty selector is invalid for deployment");
  }
  if (!spec.template) return errors.required("spec.template");
  const labels = spec.template.metadata?.labels;
  validateLabels(labels, "spec.template.metadata.labels", errors);
  if (!selectorMatches(selector, labels)) {
    errors.invalid(
      "spec.template.metadata.labels",
      labels,
      "`selector` does not match template `labels`",
    );
  }
  validatePodSpec(spec.template.spec, "spec.template.spec", errors, ["Always"]);
  if (before && !deepEqual(before.selector, selector)) {
    errors.invalid("spec.selector", selector, "field is immutable");
  }
}
