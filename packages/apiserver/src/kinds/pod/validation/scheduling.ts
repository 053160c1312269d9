import { labelKeyProblems, type LabelSelector, labelValueProblems } from "@spry/kube";
import { type FieldErrors } from "../../../field-errors.ts";
import { checkLabelKey, checkOneOf, checkSelector } from "../../../resources/validation/formats.ts";

/** `pkg/apis/core/validation`: where Pods may run. */

interface Term {
  matchExpressions?: { key?: string; operator?: string; values?: string[] }[];
}
interface Affinity {
  nodeAffinity?: {
    requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms?: Term[] | null };
  };
}
interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  tolerationSeconds?: number;
}
interface Spread {
  maxSkew?: number;
  topologyKey?: string;
  whenUnsatisfiable?: string;
  minDomains?: number;
  labelSelector?: LabelSelector;
}
export interface Scheduling {
  affinity?: Affinity;
  tolerations?: Toleration[];
  topologySpreadConstraints?: Spread[];
}

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

export function validateTolerations(
  tolerations: Toleration[] | undefined,
  path: string,
  errors: FieldErrors,
): void {
  for (const [index, toleration] of (tolerations ?? []).entries()) {
    const at = `${path}[${index}]`;
    const { key = "", operator = "", value = "", effect = "" } = toleration;
    if (key !== "") checkLabelKey(key, `${at}.key`, errors);
    else if (operator !== "Exists") {
      const detail =
        'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      errors.invalid(`${at}.operator`, operator, detail);
    }
    if (toleration.tolerationSeconds !== undefined && effect !== "NoExecute") {
      const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
      errors.invalid(`${at}.effect`, effect, detail);
    }
    if (operator === "Exists") {
      if (value)
        errors.invalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'");
    } else if (operator === "" || operator === "Equal") {
      const problems = labelValueProblems(value);
      if (problems.length > 0) errors.invalid(`${at}.operator`, value, problems.join(";"));
    } else errors.unsupported(`${at}.operator`, operator, ["Equal", "Exists"]);
    if (effect !== "" && !effects.includes(effect))
      errors.unsupported(`${at}.effect`, effect, effects);
  }
}

export function validateSpread(
  constraints: Spread[] | undefined,
  path: string,
  errors: FieldErrors,
): void {
  for (const [index, constraint] of (constraints ?? []).entries()) {
    const at = `${path}[${index}]`;
    const { maxSkew = 0, topologyKey = "", whenUnsatisfiable = "" } = constraint;
    if (maxSkew <= 0) errors.invalid(`${at}.maxSkew`, maxSkew, "must be greater than zero");
    if (topologyKey === "") errors.required(`${at}.topologyKey`, "can not be empty");
    else checkLabelKey(topologyKey, `${at}.topologyKey`, errors);
    const actions = ["DoNotSchedule", "ScheduleAnyway"];
    checkOneOf(whenUnsatisfiable, actions, `${at}.whenUnsatisfiable`, errors);
    checkSelector(constraint.labelSelector, `${at}.labelSelector`, errors);
  }
}

export function validateAffinity(affinity: Affinity, path: string, errors: FieldErrors): void {
  const required = affinity.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (!required) return;
  const at = `${path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`;
  if (!required.nodeSelectorTerms?.length)
    errors.required(at, "must have at least one node selector term");
  for (const [index, term] of (required.nodeSelectorTerms ?? []).entries())
    for (const [place, each] of (term.matchExpressions ?? []).entries())
      validateExpression(each, `${at}[${index}].matchExpressions[${place}]`, errors);
}

function validateExpression(
  { key = "", operator = "", values = [] }: NonNullable<Term["matchExpressions"]>[number],
  path: string,
  errors: FieldErrors,
): void {
  const isSet = operator === "In" || operator === "NotIn";
  const isComparison = operator === "Gt" || operator === "Lt";
  if (isSet && values.length === 0)
    errors.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'");
  else if (isComparison && values.length !== 1)
    errors.required(
      `${path}.values`,
      "must be specified single value when `operator` is 'Lt' or 'Gt'",
    );
  else if (!operators.includes(operator))
    errors.invalid(`${path}.operator`, operator, "not a valid selector operator");
  else if (!isSet && !isComparison && values.length > 0)
    errors.forbidden(
      `${path}.values`,
      "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    );
  for (const problem of labelKeyProblems(key)) errors.invalid(`${path}.key`, key, problem);
}
