import { type ApiRuleService, type ClaimedHost, type CorsPolicy } from "@spry/function";
import { type KubeObject, type Resource } from "@spry/kube";

/** `gateway.kyma-project.io/v1beta1 APIRule` (kyma-project/api-gateway, `apis/gateway/v1beta1`). */
export interface ApiRuleV1beta1 extends KubeObject {
  spec?: ApiRuleV1beta1Spec;
  status?: ApiRuleV1beta1Status;
}

export interface ApiRuleV1beta1Spec {
  host?: string;
  service?: ApiRuleService;
  gateway?: string;
  corsPolicy?: Omit<CorsPolicy, "maxAge"> & { maxAge?: string };
  rules?: RuleV1beta1[];
  timeout?: number;
}

export interface RuleV1beta1 {
  /** A regular expression for the whole path. */
  path: string;
  methods: string[];
  service?: ApiRuleService;
  accessStrategies: Handler[];
  mutators?: Handler[];
  timeout?: number;
}

export interface Handler {
  handler: string;
  config?: unknown;
}

export interface ApiRuleV1beta1Status {
  lastProcessedTime?: string;
  observedGeneration?: number;
  hosts?: ClaimedHost[];
  APIRuleStatus?: { code?: string; desc?: string };
}

export const apiRulesV1beta1: Resource<ApiRuleV1beta1> = {
  group: "gateway.kyma-project.io",
  version: "v1beta1",
  kind: "APIRule",
  plural: "apirules",
  namespaced: true,
};

/** The original's: with them an object that was written as v1beta1 is read as v1beta1 without loss. */
export const conversionAnnotations = {
  originalVersion: "gateway.kyma-project.io/original-version",
  v1beta1Spec: "gateway.kyma-project.io/v1beta1-spec",
} as const;
