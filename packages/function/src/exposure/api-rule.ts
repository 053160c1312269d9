import { type KubeObject, type Resource } from "@spry/kube/browser";

/**
 * `gateway.kyma-project.io/v2 APIRule`: under which hosts and paths a Service is exposed, and who may call it
 * (kyma-project/api-gateway, `apis/gateway/v2`). v2alpha1 has the same fields; v1beta1 is the room exposure's alone.
 */
export interface ApiRule extends KubeObject {
  spec: ApiRuleSpec;
  status?: ApiRuleStatus;
}

export interface ApiRuleSpec {
  /** A label (`dice`, in the Gateway's domain), a domain name, or `*.` and a domain name. */
  hosts?: string[];
  service?: ApiRuleService;
  /** `namespace/name` of a Gateway. */
  gateway?: string;
  /** Refused: the original's way to a gateway in another region. */
  externalGateway?: string;
  corsPolicy?: CorsPolicy;
  /** The first that matches a request's path and method applies. */
  rules?: ApiRuleRule[];
  /** Seconds; for rules without their own. */
  timeout?: number;
}

export interface ApiRuleService {
  name: string;
  /** The APIRule's own by default. */
  namespace?: string;
  port: number;
  external?: boolean;
}

/** Exactly one of noAuth, jwt and extAuth. */
export interface ApiRuleRule {
  /** `/a` alone, with `{*}` for one segment and `{**}` for several, or `/*`. */
  path: string;
  methods: string[];
  service?: ApiRuleService;
  noAuth?: boolean;
  jwt?: JwtConfig;
  /** Refused. */
  extAuth?: { authorizers?: string[]; restrictions?: JwtConfig };
  /** Seconds. */
  timeout?: number;
  /** What the Service gets in addition. */
  request?: { headers?: Record<string, string>; cookies?: Record<string, string> };
}

export interface JwtConfig {
  authentications?: JwtAuthentication[];
  /** One of them must hold; without any, each valid token will do. */
  authorizations?: JwtAuthorization[];
}

export interface JwtAuthentication {
  issuer: string;
  jwksUri: string;
  fromHeaders?: JwtHeader[];
  fromParams?: string[];
}

export interface JwtHeader {
  name: string;
  prefix?: string;
}

/** All scopes, and all audiences. */
export interface JwtAuthorization {
  requiredScopes?: string[];
  audiences?: string[];
}

export interface CorsPolicy {
  allowOrigins?: StringMatch[];
  allowMethods?: string[];
  allowHeaders?: string[];
  exposeHeaders?: string[];
  allowCredentials?: boolean;
  /** Seconds. */
  maxAge?: number;
}

/** One of them. Regular expressions are RE2's, and match the whole text. */
export interface StringMatch {
  exact?: string;
  prefix?: string;
  regex?: string;
}

export type ApiRuleState = "Ready" | "Processing" | "Warning" | "Error" | "Deleting";

export interface ApiRuleStatus {
  /** When the status was last written for a change. */
  lastProcessedTime?: string;
  /** Ours: which generation of the spec the status is about. */
  observedGeneration?: number;
  state: ApiRuleState;
  description?: string;
  /** Ours: the hosts that belong to this APIRule, by their full names. Undefined until the first status. */
  hosts?: ClaimedHost[];
}

export interface ClaimedHost {
  name: string;
  /** RFC 3339. */
  since: string;
}

const group = "gateway.kyma-project.io";

function apiRuleResource(version: string): Resource<ApiRule> {
  return { group, version, kind: "APIRule", plural: "apirules", namespaced: true };
}

export const apiRules = apiRuleResource("v2");
export const apiRulesV2alpha1 = apiRuleResource("v2alpha1");
