import { type HorizontalPodAutoscaler, parseQuantity } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { nameProblems } from "../../resources/metadata.ts";
import { checkName, checkOneOf } from "../../resources/validation/formats.ts";

/** `pkg/apis/autoscaling/validation`. */

type Spec = NonNullable<HorizontalPodAutoscaler["spec"]>;
type Rules = NonNullable<NonNullable<Spec["behavior"]>["scaleUp"]>;
interface Target {
  type?: string;
  value?: string;
  averageValue?: string;
  averageUtilization?: number;
}
interface Reference {
  kind?: string;
  name?: string;
  apiVersion?: string;
}
interface Source {
  name?: string;
  container?: string;
  metric?: { name?: string };
  describedObject?: Reference;
  target?: Target;
}

/** Type of a metric → the field that says more of it. */
const sources = {
  ContainerResource: "containerResource",
  External: "external",
  Object: "object",
  Pods: "pods",
  Resource: "resource",
} as const;
type SourceField = (typeof sources)[keyof typeof sources];
/** The order in which Kubernetes looks at them. */
const sourceOrder = ["object", "external", "pods", "resource", "containerResource"] as const;
const maxWindowSeconds = 3600;
const maxPeriodSeconds = 1800;

export function validateAutoscaler(spec: Spec, errors: FieldErrors): void {
  const { minReplicas, maxReplicas, metrics = [], behavior } = spec;
  if (minReplicas !== undefined && minReplicas < 1)
    errors.invalid("spec.minReplicas", minReplicas, "must be greater than or equal to 1");
  if (maxReplicas === 0) errors.required("spec.maxReplicas", "must be set and greater than 0");
  else if (maxReplicas < 0)
    errors.invalid("spec.maxReplicas", maxReplicas, "must be greater than or equal to 1");
  if (minReplicas !== undefined && maxReplicas < minReplicas) {
    const detail = "must be greater than or equal to `minReplicas`";
    errors.invalid("spec.maxReplicas", maxReplicas, detail);
  }
  validateReference(spec.scaleTargetRef, "spec.scaleTargetRef", errors);
  validateTargetGroup(spec.scaleTargetRef, errors);
  for (const [index, metric] of metrics.entries())
    validateMetric(metric, `spec.metrics[${index}]`, errors);
  const canBeZero = metrics.some(({ type }) => ["Object", "External"].includes(type));
  if (minReplicas === 0 && !canBeZero) {
    errors.forbidden(
      "spec.metrics",
      "must specify at least one Object or External metric to support scaling to zero replicas",
    );
  }
  if (behavior?.scaleUp) validateRules(behavior.scaleUp, "spec.behavior.scaleUp", errors);
  if (behavior?.scaleDown) validateRules(behavior.scaleDown, "spec.behavior.scaleDown", errors);
}

function validateReference(reference: Reference = {}, path: string, errors: FieldErrors): void {
  for (const field of ["kind", "name"] as const) {
    const value = reference[field];
    if (!value) errors.required(`${path}.${field}`);
    else
      for (const problem of nameProblems(value, "path"))
        errors.invalid(`${path}.${field}`, value, problem);
  }
  const { apiVersion = "" } = reference;
  if (apiVersion.split("/").length > 2)
    errors.invalid(
      `${path}.apiVersion`,
      apiVersion,
      `unexpected GroupVersion string: ${apiVersion}`,
    );
}

/** The core group has only one kind that can be scaled, while a metric may describe any of its kinds, such as a Service. */
function validateTargetGroup({ apiVersion = "", kind }: Reference = {}, errors: FieldErrors): void {
  if (!apiVersion.includes("/") && kind !== "ReplicationController")
    errors.invalid(
      "spec.scaleTargetRef.apiVersion",
      apiVersion,
      "apiVersion must specify API group",
    );
}

type Metric = { type?: string } & Partial<Record<SourceField, Source>>;

function validateMetric(metric: Metric, path: string, errors: FieldErrors): void {
  const types = Object.keys(sources);
  const { type = "" } = metric;
  const wanted = (sources as Record<string, SourceField | undefined>)[type];
  if (type === "") errors.required(`${path}.type`, "must specify a metric source type");
  if (!wanted) errors.unsupported(`${path}.type`, type, types);
  const present = sourceOrder.filter((field) => metric[field]);
  const [first] = present;
  if (first) validateSource(first, metric[first] ?? {}, `${path}.${first}`, errors);
  if (!wanted) errors.unsupported(`${path}.type`, type, types);
  else if (!metric[wanted]) {
    errors.required(`${path}.${wanted}`, "must populate information for the given metric source");
  }
  if (present.length === 1) return;
  for (const field of present.filter((each) => each !== wanted))
    errors.forbidden(`${path}.${field}`, "must populate the given metric source only");
}

function validateSource(
  field: SourceField,
  source: Source,
  path: string,
  errors: FieldErrors,
): void {
  const { name, container, metric, target = {} } = source;
  if (field === "object")
    validateReference(source.describedObject, `${path}.describedObject`, errors);
  if (field === "resource" || field === "containerResource") {
    if (!name) errors.required(`${path}.name`, "must specify a resource name");
    if (field === "containerResource") {
      if (!container) errors.required(`${path}.container`, "must specify a container");
      else checkName(container, "label", `${path}.container`, errors);
    }
  } else if (!metric?.name) {
    errors.required(`${path}.metric.name`, "must specify a metric name");
  } else {
    for (const problem of nameProblems(metric.name, "path"))
      errors.invalid(`${path}.metric.name`, metric.name, problem);
  }
  validateTarget(target, `${path}.target`, errors);
  validateAmounts(field, target, `${path}.target`, errors);
}

function validateTarget(target: Target, path: string, errors: FieldErrors): void {
  const { type = "", averageUtilization } = target;
  if (type === "") errors.required(`${path}.type`, "must specify a metric target type");
  if (!["Utilization", "Value", "AverageValue"].includes(type)) {
    const detail = "must be either Utilization, Value, or AverageValue";
    errors.invalid(`${path}.type`, type, detail);
  }
  for (const field of ["value", "averageValue"] as const) {
    const amount = target[field];
    if (amount !== undefined && parseQuantity(amount).nano <= 0n)
      errors.invalid(`${path}.${field}`, amount, "must be positive");
  }
  if (averageUtilization !== undefined && averageUtilization < 1)
    errors.invalid(`${path}.averageUtilization`, averageUtilization, "must be greater than 0");
}

/** Which of its amounts a target of the source must have, and which exclude each other. */
function validateAmounts(
  field: SourceField,
  { value, averageValue, averageUtilization }: Target,
  path: string,
  errors: FieldErrors,
): void {
  if (field === "resource" || field === "containerResource") {
    if (averageUtilization === undefined && averageValue === undefined) {
      const detail = "must set either a target raw value or a target utilization";
      errors.required(`${path}.averageUtilization`, detail);
    } else if (averageUtilization !== undefined && averageValue !== undefined) {
      const detail = "may not set both a target raw value and a target utilization";
      errors.forbidden(`${path}.averageValue`, detail);
    }
    return;
  }
  if (field === "pods") {
    if (averageValue === undefined)
      errors.required(`${path}.averageValue`, "must specify a positive target averageValue");
    return;
  }
  if (value === undefined && averageValue === undefined) {
    const detail =
      field === "object"
        ? "must set either a target value or averageValue"
        : "must set either a target value for metric or a per-pod target";
    errors.required(`${path}.averageValue`, detail);
  }
  if (field === "external" && value !== undefined && averageValue !== undefined) {
    const detail = "may not set both a target value for metric and a per-pod target";
    errors.forbidden(`${path}.value`, detail);
  }
}

function validateRules(rules: Rules, path: string, errors: FieldErrors): void {
  const { stabilizationWindowSeconds: window, selectPolicy, policies = [] } = rules;
  const at = `${path}.stabilizationWindowSeconds`;
  if (window !== undefined && window < 0)
    errors.invalid(at, window, "must be greater than or equal to zero");
  if (window !== undefined && window > maxWindowSeconds)
    errors.invalid(at, window, `must be less than or equal to ${maxWindowSeconds}`);
  checkOneOf(selectPolicy, ["Disabled", "Max", "Min"], `${path}.selectPolicy`, errors);
  if (policies.length === 0)
    errors.required(`${path}.policies`, "must specify at least one Policy");
  for (const [index, policy] of policies.entries()) {
    const each = `${path}.policies[${index}]`;
    checkOneOf(policy.type, ["Percent", "Pods"], `${each}.type`, errors);
    for (const field of ["value", "periodSeconds"] as const)
      if (policy[field] <= 0)
        errors.invalid(`${each}.${field}`, policy[field], "must be greater than zero");
    if (policy.periodSeconds > maxPeriodSeconds) {
      const detail = `must be less than or equal to ${maxPeriodSeconds}`;
      errors.invalid(`${each}.periodSeconds`, policy.periodSeconds, detail);
    }
  }
}
