import { type ApiRule, type ApiRuleRule, type ApiRuleSpec } from "@spry/function";
import { bounds } from "../bounds.ts";
import { specOf, v1beta1SpecOf } from "../conversion/convert.ts";
import { validateCors } from "./cors.ts";
import { type Failure, failure } from "./failure.ts";
import { validateHosts } from "./hosts.ts";
import { validateJwt, validateSameIssuers } from "./jwt.ts";
import { validateConflicts, validatePath } from "./paths.ts";
import { validateRequest } from "./request.ts";
import { validateV1beta1 } from "./v1beta1.ts";

/**
 * Everything that can be said about an APIRule without looking at other objects. Paths are those of the version that
 * it was written in; messages are the original's where it has one (`internal/validation/v2alpha1`). Objects are expected
 * not to change: the answer is remembered with each.
 */
export function validateApiRule(rule: ApiRule): readonly Failure[] {
  let known = answers.get(rule);
  if (!known) answers.set(rule, (known = validate(rule)));
  return known;
}

const answers = new WeakMap<ApiRule, readonly Failure[]>();

function validate(rule: ApiRule): Failure[] {
  const older = v1beta1SpecOf(rule);
  if (!older) return validateSpec(rule.spec);
  return validateV1beta1(older, specOf(older, rule.metadata.namespace ?? ""));
}

function validateSpec(spec: ApiRuleSpec): Failure[] {
  const { hosts, rules = [], gateway, externalGateway } = spec;
  if (Object.keys(spec).length === 0)
    return [failure("spec", "APIRule contains an empty spec: define hosts, gateway and rules")];
  return [
    ...(rules.length === 0 ? [failure("spec.rules", "No rules defined")] : []),
    ...(rules.length > bounds.rules
      ? [failure("spec.rules", `at most ${bounds.rules} rules are allowed`)]
      : []),
    ...rules.flatMap((rule, index) => validateRule(`spec.rules[${index}]`, rule, spec)),
    ...validateConflicts(rules),
    ...validateSameIssuers(rules),
    ...validateHosts(hosts),
    ...(gateway === undefined && externalGateway === undefined
      ? [failure("spec.gateway", "Either gateway or externalGateway must be specified")]
      : []),
    ...(externalGateway === undefined
      ? []
      : [failure("spec.externalGateway", "external gateways are not supported: use gateway")]),
    ...validateCors(spec.corsPolicy),
  ];
}

function validateRule(path: string, rule: ApiRuleRule, spec: ApiRuleSpec): Failure[] {
  const failures: Failure[] = [];
  if (!spec.service && !rule.service) {
    const message = "The rule must define a service, because no service is defined on spec level";
    failures.push(failure(`${path}.service`, message));
  }
  if (rule.jwt) failures.push(...validateJwt(`${path}.jwt`, rule.jwt));
  if (rule.extAuth) {
    const message =
      "external authorization is not supported: use jwt, or check the request in the Function";
    failures.push(failure(`${path}.extAuth`, message));
  }
  failures.push(...validatePath(`${path}.path`, rule.path), ...validateRequest(path, rule));
  return failures;
}
