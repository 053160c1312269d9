import { isLabelKey } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { nameProblems, qualifiedNameDetail } from "../../resources/metadata.ts";
import {
  validateExpression,
  validateMatchConditions,
} from "../../admission/expressions/validation.ts";
import { type Rule } from "../../admission/matching.ts";
import { validateRule } from "../../admission/rule-validation.ts";
import { validateSelector } from "../../admission/selector-validation.ts";
import {
  type BindingSpec,
  type MatchResources,
  type ParamKind,
  type ParamRef,
  type Validation,
  type ValidatingPolicySpec,
} from "../../admission/policies/policy.ts";

const maxAuditAnnotations = 20;
const maxValueExpression = 5 * 1024;

/** `pkg/apis/admissionregistration/validation`. */
export function validatePolicy(
  spec: ValidatingPolicySpec,
  name: string,
  errors: FieldErrors,
): void {
  const { failurePolicy = "", matchConstraints, variables = [], validations = [] } = spec;
  if (!["Fail", "Ignore"].includes(failurePolicy)) {
    errors.unsupported("spec.failurePolicy", failurePolicy, ["Fail", "Ignore"]);
  }
  validateParamKind(spec.paramKind, "spec.paramKind", errors);
  if (!matchConstraints) errors.required("spec.matchConstraints");
  else {
    validateMatchResources(matchConstraints, "spec.matchConstraints", errors);
    if (!matchConstraints.resourceRules?.length) {
      errors.required("spec.matchConstraints.resourceRules");
    }
  }
  validateMatchConditions(spec.matchConditions, "spec.matchConditions", errors);
  for (const [index, variable] of variables.entries()) {
    validateVariable(variable, `spec.variables[${index}]`, errors);
  }
  if (validations.length === 0 && !spec.auditAnnotations?.length) {
    const told = "validations or auditAnnotations must contain at least one item";
    errors.required("spec.validations", told);
    errors.required("spec.auditAnnotations", told);
    return;
  }
  for (const [index, validation] of validations.entries()) {
    validateValidation(validation, `spec.validations[${index}]`, errors);
  }
  validateAuditAnnotations(spec, name, errors);
}

export function validateBinding(spec: BindingSpec, errors: FieldErrors): void {
  const { policyName, paramRef, matchResources, validationActions = [] } = spec;
  if (!policyName) errors.required("spec.policyName");
  else {
    for (const problem of nameProblems(policyName, "subdomain")) {
      errors.invalid("spec.policyName", policyName, problem);
    }
  }
  validateParamRef(paramRef, "spec.paramRef", errors);
  validateMatchResources(matchResources, "spec.matchResources", errors);
  validateActions(validationActions, "spec.validationActions", errors);
}

function validateParamKind(kind: ParamKind | undefined, path: string, errors: FieldErrors): void {
  if (!kind) return;
  if (!kind.apiVersion) errors.required(`${path}.apiVersion`);
  else if (kind.apiVersion.split("/").length > 2) {
    const told = `unexpected GroupVersion string: ${kind.apiVersion}`;
    errors.invalid(`${path}.apiVersion`, kind.apiVersion, told);
  }
  if (!kind.kind) errors.required(`${path}.kind`);
}

function validateVariable(
  { name, expression }: { name?: string; expression?: string },
  path: string,
  errors: FieldErrors,
): void {
  if (!name?.trim()) errors.required(`${path}.name`, "name is not specified");
  else if (!/^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name)) {
    errors.invalid(`${path}.name`, name, "must be a valid CEL identifier");
  }
  if (!expression?.trim()) errors.required(`${path}.expression`, "expression is not specified");
  else validateExpression(expression, `${path}.expression`, errors);
}

function validateValidation(validation: Validation, path: string, errors: FieldErrors): void {
  const { expression, message, messageExpression, reason } = validation;
  if (!expression?.trim()) errors.required(`${path}.expression`, "expression is not specified");
  else validateExpression(expression, `${path}.expression`, errors, ["bool"]);
  if (messageExpression && !messageExpression.trim()) {
    errors.invalid(
      `${path}.messageExpression`,
      messageExpression,
      "must be non-empty if specified",
    );
  } else if (messageExpression) {
    validateExpression(messageExpression, `${path}.messageExpression`, errors, ["string"]);
  }
  if (message && !message.trim()) {
    errors.invalid(`${path}.message`, message, "must be non-empty if specified");
  } else if (message?.trim().includes("\n")) {
    errors.invalid(`${path}.message`, message, "must not contain line breaks");
  }
  const reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
  if (reason !== undefined && !reasons.includes(reason)) {
    errors.unsupported(`${path}.reason`, reason, reasons);
  }
}

function validateAuditAnnotations(
  { auditAnnotations = [] }: ValidatingPolicySpec,
  policy: string,
  errors: FieldErrors,
): void {
  const path = "spec.auditAnnotations";
  if (auditAnnotations.length > maxAuditAnnotations) {
    errors.invalid(
      path,
      auditAnnotations,
      `must not have more than ${maxAuditAnnotations} auditAnnotations`,
    );
  }
  const keys = new Set<string>();
  for (const [index, { key, valueExpression }] of auditAnnotations.entries()) {
    const at = `${path}[${index}]`;
    if (!isLabelKey(`${policy}/${key}`)) {
      errors.invalid(`${at}.key`, `${policy}/${key}`, qualifiedNameDetail);
    }
    if (!valueExpression?.trim()) {
      errors.required(`${at}.valueExpression`, "valueExpression is not specified");
    } else if (valueExpression.trim().length > maxValueExpression) {
      const told = `must not exceed ${maxValueExpression} bytes in length`;
      errors.required(`${at}.valueExpression`, told);
    } else
      validateExpression(valueExpression.trim(), `${at}.valueExpression`, errors, [
        "string",
        "null_type",
      ]);
    if (keys.has(key)) errors.duplicate(`${at}.key`, key);
    keys.add(key);
  }
}

function validateMatchResources(
  resources: MatchResources | undefined,
  path: string,
  errors: FieldErrors,
): void {
  if (!resources) return;
  const { matchPolicy = "", resourceRules = [], excludeResourceRules = [] } = resources;
  if (!["Equivalent", "Exact"].includes(matchPolicy)) {
    errors.unsupported(`${path}.matchPolicy`, matchPolicy, ["Equivalent", "Exact"]);
  }
  validateSelector(resources.namespaceSelector, `${path}.namespaceSelector`, errors);
  validateSelector(resources.objectSelector, `${path}.objectSelector`, errors);
  const check = (rules: Rule[], field: string) => {
    for (const [index, rule] of rules.entries()) {
      const at = `${path}.${field}[${index}]`;
      validateNames(rule.resourceNames ?? [], `${at}.resourceNames`, errors);
      validateRule(rule, at, errors);
    }
  };
  check(resourceRules, "resourceRules");
  check(excludeResourceRules, "excludeResourceRules");
}

function validateNames(names: string[], path: string, errors: FieldErrors): void {
  for (const [index, name] of names.entries()) {
    for (const problem of nameProblems(name, "path")) {
      errors.invalid(`${path}[${index}]`, name, problem);
    }
    if (names.indexOf(name) < index) errors.duplicate(`${path}[${index}]`, name);
  }
}

function validateParamRef(ref: ParamRef | undefined, path: string, errors: FieldErrors): void {
  if (!ref) return;
  const exclusive = "name and selector are mutually exclusive";
  if (ref.name && ref.selector) errors.forbidden(`${path}.name`, exclusive);
  validateSelector(ref.selector, `${path}.selector`, errors);
  if (ref.name && ref.selector) errors.forbidden(`${path}.selector`, exclusive);
  if (!ref.name && !ref.selector) {
    errors.required(path, "one of name or selector must be specified");
  }
  const action = ref.parameterNotFoundAction;
  if (!action) errors.required(`${path}.parameterNotFoundAction`);
  else if (action !== "Deny" && action !== "Allow") {
    errors.unsupported(`${path}.parameterNotFoundAction`, action, ["Deny", "Allow"]);
  }
}

function validateActions(actions: string[], path: string, errors: FieldErrors): void {
  for (const [index, action] of actions.entries()) {
    if (!["Audit", "Deny", "Warn"].includes(action)) {
      errors.unsupported(`${path}[${index}]`, action, ["Audit", "Deny", "Warn"]);
    }
    if (actions.indexOf(action) < index) errors.duplicate(`${path}[${index}]`, action);
  }
  if (actions.includes("Deny") && actions.includes("Warn")) {
    errors.invalid(
      path,
      actions,
      "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
    );
  }
  if (actions.length === 0) errors.required(path, "at least one validation action is required");
}
