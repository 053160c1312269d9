import { type ApiRule, type CorsPolicy, type ExposedRule, type RouteTarget } from "@spry/function";
import { defaultTimeoutSeconds } from "../bounds.ts";
import { corsPolicyOfV1beta1, v1beta1SpecOf } from "../conversion/convert.ts";
import {
  authenticationOfV1beta1,
  pathOfV1beta1,
  requestOfV1beta1,
} from "../conversion/v1beta1-rule.ts";
import { type ApiRuleV1beta1Spec } from "../conversion/v1beta1.ts";
import { addressOf, type ServiceAddress } from "./service-address.ts";

/** Looks an address up among the Services. */
export type TargetOf = (address: ServiceAddress) => RouteTarget;

/** What an APIRule says about each of its hosts. */
export function contentOf(
  rule: ApiRule,
  target: TargetOf,
): { rules: ExposedRule[]; cors?: CorsPolicy } {
  const older = v1beta1SpecOf(rule);
  const namespace = rule.metadata.namespace ?? "";
  return older ? contentOfV1beta1(older, namespace, target) : contentOfV2(rule, namespace, target);
}

function contentOfV2({ spec }: ApiRule, namespace: string, target: TargetOf) {
  const rules = (spec.rules ?? []).map((rule): ExposedRule => {
    const { path, methods, jwt, request, timeout = spec.timeout } = rule;
    const { authentications = [], authorizations = [] } = jwt ?? {};
    return {
      path: { kind: "template", template: path === "/*" ? "/{**}" : path },
      methods,
      authentication: jwt ? { kind: "jwt", authentications, authorizations } : { kind: "none" },
      target: target(addressOf(rule.service, spec.service, namespace)),
      timeoutMs: (timeout ?? defaultTimeoutSeconds) * 1_000,
      requestHeaders: request?.headers ?? {},
      requestCookies: request?.cookies ?? {},
    };
  });
  return { rules, ...(spec.corsPolicy ? { cors: spec.corsPolicy } : {}) };
}

/** What v1beta1 applies without a corsPolicy (the original's `04-70-changes-in-apirule-v2.md`). */
const corsOfV1beta1: CorsPolicy = {
  allowOrigins: [{ regex: ".*" }],
  allowMethods: ["GET", "POST", "PUT", "DELETE", "PATCH"],
  allowHeaders: ["Authorization", "Content-Type", "*"],
};

function contentOfV1beta1(older: ApiRuleV1beta1Spec, namespace: string, target: TargetOf) {
  const rules = (older.rules ?? []).map((rule): ExposedRule => {
    const request = requestOfV1beta1(rule.mutators);
    const timeout = rule.timeout ?? older.timeout ?? defaultTimeoutSeconds;
    return {
      path: pathOfV1beta1(rule.path),
      methods: rule.methods,
      authentication: authenticationOfV1beta1(rule),
      target: target(addressOf(rule.service, older.service, namespace)),
      timeoutMs: timeout * 1_000,
      requestHeaders: request?.headers ?? {},
      requestCookies: request?.cookies ?? {},
    };
  });
  return { rules, cors: corsPolicyOfV1beta1(older) ?? corsOfV1beta1 };
}
