import { type ApiRuleSpec } from "@spry/function";
import {
  authenticationOfV1beta1,
  pathOfV1beta1,
  requestOfV1beta1,
} from "../conversion/v1beta1-rule.ts";
import { type ApiRuleV1beta1Spec, type RuleV1beta1 } from "../conversion/v1beta1.ts";
import { regexProblem } from "../regex.ts";
import { validateCors } from "./cors.ts";
import { type Failure, failure } from "./failure.ts";
import { isFullHost, isShortHost, reservedHost } from "./hosts.ts";
import { validateJwt } from "./jwt.ts";
import { validatePath } from "./paths.ts";
import { validateRequest } from "./request.ts";

/** Each costs its time in every request of its host that no template matches. */
const maxRegexes = 100;

/** Of an APIRule that was written as v1beta1 (messages of the original's `internal/validation/v1beta1`). */
export function validateV1beta1(spec: ApiRuleV1beta1Spec, converted: ApiRuleSpec): Failure[] {
  const { rules = [], host = "" } = spec;
  const regexes = rules.filter(({ path }) => pathOfV1beta1(path).kind === "regex");
  return [
    ...validateHost(host.toLowerCase()),
    ...(rules.length === 0 ? [failure("spec.rules", "No rules defined")] : []),
    ...(regexes.length > maxRegexes
      ? [failure("spec.rules", `at most ${maxRegexes} paths may be regular expressions`)]
      : []),
    ...duplicates(rules),
    ...rules.flatMap((rule, index) => validateRule(`spec.rules[${index}]`, rule, spec)),
    ...(converted.gateway === undefined
      ? [failure("spec.gateway", "Gateway must be in the namespace/name format")]
      : []),
    ...validateCors(converted.corsPolicy),
  ];
}

function validateHost(host: string): Failure[] {
  if (!isShortHost(host) && !isFullHost(host))
    return [failure("spec.host", "Host must be a valid FQDN or short host name")];
  const reserved = reservedHost(host);
  return reserved ? [failure("spec.host", reserved)] : [];
}

function duplicates(rules: readonly RuleV1beta1[]): Failure[] {
  const all = rules.flatMap(({ path, methods }) => methods.map((method) => `${path}:${method}`));
  if (new Set(all).size === all.length) return [];
  return [failure("spec.rules", "multiple rules defined for the same path and method")];
}

function validateRule(path: string, rule: RuleV1beta1, spec: ApiRuleV1beta1Spec): Failure[] {
  const failures: Failure[] = [];
  if (!spec.service && !rule.service)
    failures.push(
      failure(`${path}.service`, "No service defined with no main service on spec level"),
    );
  const pattern = pathOfV1beta1(rule.path);
  if (pattern.kind === "template") failures.push(...validatePath(`${path}.path`, pattern.template));
  else {
    const problem = regexProblem(pattern.regex);
    if (problem) failures.push(failure(`${path}.path`, problem));
  }
  const authentication = authenticationOfV1beta1(rule);
  if (authentication.kind === "jwt") {
    const { authentications, authorizations } = authentication;
    const jwt = {
      authentications,
      ...(authorizations.length > 0 ? { authorizations: [...authorizations] } : {}),
    };
    failures.push(...validateJwt(`${path}.accessStrategies[0].config`, jwt));
  }
  const request = requestOfV1beta1(rule.mutators);
  if (request) {
    const { methods } = rule;
    failures.push(...validateRequest(path, { path: "/", methods, request }));
  }
  return failures;
}
