import {
  type ApiRule,
  type ApiRuleRule,
  apiRules,
  type ApiRuleSpec,
  type ApiRuleState,
  type ApiRuleStatus,
  apiRulesV2alpha1,
  type CorsPolicy,
} from "@spry/function";
import { apiVersionOf, deepEqual, type KubeObject } from "@spry/kube";
import { gatewayName } from "./gateway-name.ts";
import { isV1beta1Spec } from "./v1beta1-shape.ts";
import {
  authenticationOfV1beta1,
  isConvertible,
  pathOfV1beta1,
  requestOfV1beta1,
} from "./v1beta1-rule.ts";
import {
  type ApiRuleV1beta1,
  type ApiRuleV1beta1Spec,
  type ApiRuleV1beta1Status,
  apiRulesV1beta1,
  conversionAnnotations,
  type RuleV1beta1,
} from "./v1beta1.ts";

const v1beta1 = apiVersionOf(apiRulesV1beta1);
const equal = [apiVersionOf(apiRules), apiVersionOf(apiRulesV2alpha1)];
const { originalVersion, v1beta1Spec } = conversionAnnotations;

/**
 * An APIRule in another version. v2 and v2alpha1 differ in nothing. A v1beta1 object keeps its spec in the original's
 * annotation, so that v1beta1 is read without loss, and regular expressions are served as they are.
 * @throws Error if a version is not one of the three.
 */
export function convertApiRule(object: KubeObject, to: string): KubeObject {
  const from = object.apiVersion ?? "";
  for (const version of [from, to]) {
    if (version !== v1beta1 && !equal.includes(version))
      throw new Error(`converting an APIRule from ${from} to ${to} is not supported`);
  }
  if (from === to) return object;
  if (from === v1beta1) return { ...fromV1beta1(object), apiVersion: to };
  if (to === v1beta1) return toV1beta1(object as ApiRule);
  return { ...object, apiVersion: to };
}

/**
 * The v1beta1 spec that this object was written with; undefined if it was written, or has since been changed, as v2.
 * Then the spec differs from what the annotation would be converted to. Objects are expected not to change.
 */
export function v1beta1SpecOf(rule: ApiRule): ApiRuleV1beta1Spec | undefined {
  if (rule.metadata.annotations?.[originalVersion] !== "v1beta1") return undefined;
  let known = specsOfObjects.get(rule);
  if (known === undefined) specsOfObjects.set(rule, (known = keptSpec(rule) ?? null));
  return known ?? undefined;
}

const specsOfObjects = new WeakMap<ApiRule, ApiRuleV1beta1Spec | null>();

/** An annotation may be any text: what cannot be converted is not a spec. */
function keptSpec({ metadata, spec }: ApiRule): ApiRuleV1beta1Spec | undefined {
  try {
    const kept: unknown = JSON.parse(metadata.annotations?.[v1beta1Spec] ?? "");
    return isV1beta1Spec(kept) && deepEqual(specOf(kept, metadata.namespace ?? ""), spec)
      ? kept
      : undefined;
  } catch {
    return undefined;
  }
}

function fromV1beta1({ metadata, spec = {}, status, ...rest }: ApiRuleV1beta1): ApiRule {
  const written = metadata.annotations?.[originalVersion];
  const isOlder = written !== "v2" && written !== "v2alpha1";
  const kept = { [v1beta1Spec]: JSON.stringify(spec), [originalVersion]: "v1beta1" };
  const annotations = { ...metadata.annotations, ...(isOlder ? kept : {}) };
  const current = statusOf(status);
  return {
    ...rest,
    metadata: { ...metadata, annotations },
    spec: specOf(spec, metadata.namespace ?? ""),
    ...(current ? { status: current } : {}),
  };
}

function toV1beta1(rule: ApiRule): ApiRuleV1beta1 {
  const { status, metadata, kind = apiRules.kind } = rule;
  const older = status && {
    APIRuleStatus: {
      code: codes[status.state],
      ...(status.description === undefined ? {} : { desc: status.description }),
    },
    ...processed(status),
  };
  // What was written as v2 has no form in v1beta1; the original shows an empty spec, too.
  const spec = v1beta1SpecOf(rule) ?? {};
  return { apiVersion: v1beta1, kind, metadata, spec, ...(older ? { status: older } : {}) };
}

const codes: Record<ApiRuleState, string> = {
  Ready: "OK",
  Error: "ERROR",
  Warning: "WARNING",
  Deleting: "OK",
  Processing: "OK",
};
const states: Record<string, ApiRuleState> = {
  OK: "Ready",
  ERROR: "Error",
  WARNING: "Warning",
  SKIPPED: "Warning",
};

function statusOf(status: ApiRuleV1beta1Status | undefined): ApiRuleStatus | undefined {
  const state = states[status?.APIRuleStatus?.code ?? ""];
  if (!state) return undefined;
  const { APIRuleStatus } = status ?? {};
  return {
    state,
    ...(APIRuleStatus?.desc === undefined ? {} : { description: APIRuleStatus.desc }),
    ...processed(status ?? {}),
  };
}

/** What both versions have under the same names. */
function processed({ lastProcessedTime, observedGeneration, hosts }: Omit<ApiRuleStatus, "state">) {
  return {
    ...(hosts === undefined ? {} : { hosts }),
    ...(lastProcessedTime === undefined ? {} : { lastProcessedTime }),
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
  };
}

/** A v1beta1 spec in v2: without rules if one of them cannot be expressed, as the original does it. */
export function specOf(spec: ApiRuleV1beta1Spec, namespace: string): ApiRuleSpec {
  const { host, service, timeout, rules } = spec;
  const gateway = spec.gateway === undefined ? undefined : gatewayName(spec.gateway, namespace);
  const corsPolicy = corsPolicyOfV1beta1(spec);
  const converted = (rules ?? []).map(ruleOf);
  const expressible = converted.every((rule) => rule !== undefined);
  return {
    // v1beta1 allows capitals, v2 does not: no later write may fail for them.
    ...(host === undefined ? {} : { hosts: [host.toLowerCase()] }),
    ...(service ? { service } : {}),
    ...(gateway === undefined ? {} : { gateway }),
    ...(corsPolicy ? { corsPolicy } : {}),
    rules: expressible ? converted : [],
    ...(timeout === undefined ? {} : { timeout }),
  };
}

function ruleOf(rule: RuleV1beta1): ApiRuleRule | undefined {
  const path = pathOfV1beta1(rule.path);
  const authentication = authenticationOfV1beta1(rule);
  if (path.kind !== "template" || authentication.kind === "refused" || !isConvertible(rule))
    return undefined;
  const { methods, service, timeout } = rule;
  const request = requestOfV1beta1(rule.mutators);
  const { authentications, authorizations } =
    authentication.kind === "jwt" ? authentication : { authentications: [], authorizations: [] };
  return {
    path: path.template === "/{**}" ? "/*" : path.template,
    methods,
    ...(service ? { service } : {}),
    ...(authentication.kind === "none"
      ? { noAuth: true }
      : {
          jwt: {
            // Each has an issuer: otherwise the rule would not be convertible.
            authentications: authentications.map((each) => ({
              ...each,
              issuer: each.issuer ?? "",
            })),
            ...(authorizations.length > 0 ? { authorizations: [...authorizations] } : {}),
          },
        }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(request ? { request } : {}),
  };
}

export function corsPolicyOfV1beta1({ corsPolicy }: ApiRuleV1beta1Spec): CorsPolicy | undefined {
  if (!corsPolicy) return undefined;
  const { maxAge, ...rest } = corsPolicy;
  const seconds = maxAge === undefined ? undefined : secondsOf(maxAge);
  return { ...rest, ...(seconds ? { maxAge: seconds } : {}) };
}

const units: Record<string, number> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3_600,
};

/** Go's durations (`1h30m`), in whole seconds. */
function secondsOf(duration: string): number {
  let seconds = 0;
  for (const [, amount = "", unit = ""] of duration.matchAll(/([0-9.]+)(ns|us|µs|ms|s|m|h)/g))
    seconds += Number(amount) * (units[unit] ?? 0);
  return Math.floor(seconds);
}
