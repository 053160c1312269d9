/** APIRules: under which hosts Services are exposed, and who may call them. */

// Where APIRules are kept, converted, checked, and given a status.
export { apiRuleCrd } from "./definitions/api-rule-crd.ts";
export { gatewayCrd } from "./definitions/gateway-crd.ts";
export {
  type DefinitionOwner,
  definitionOwner,
  ensureDefinitions,
} from "./definitions/ensure-definitions.ts";
export {
  validatingConfiguration,
  validatingConfigurationName,
  type WebhookLocation,
} from "./webhook-location.ts";
export { exposureWebhooks } from "./admission.ts";
export { apiRulesV1beta1, type ApiRuleV1beta1 } from "./conversion/v1beta1.ts";
export { type HostAuthority } from "./status/own-certificates.ts";
export { type ExposureOptions, startExposure } from "./status/start.ts";

// What the gateway decides by.
export { heldSince } from "./routes/claims.ts";
export { type RouteOptions, routesOf } from "./routes/routes-of.ts";
export { isStatusAlone } from "./routes/status-alone.ts";
export { withPorts } from "./routes/slim-service.ts";
export { type HostRoutes, HostTable } from "./routes/host-table.ts";
export {
  createRuleMatcher,
  matchStatus,
  type RuleMatch,
  type RuleMatcher,
} from "./routes/rule-matcher.ts";
export { fullHost } from "./routes/gateway-hosts.ts";
export { otherReadings, requestPath } from "./routes/request-path.ts";
export { requestChanges } from "./access/request-changes.ts";
export {
  type CorsDecider,
  type CorsDecision,
  corsHeaders,
  type CorsRequest,
  createCorsDecider,
} from "./access/cors.ts";
export { type Claims, isAuthorized } from "./access/authorize.ts";
export { createJwtCheck, type JwtCheck, type JwtDecision } from "./access/jwt-check.ts";
export { JwksCache, type JwksCacheOptions, type KeySource } from "./access/jwks-cache.ts";
export { exposableFrom, permits } from "./routes/service-address.ts";
export { fetchKeys, type KeyFetchOptions } from "./access/fetch-keys.ts";
export { type TokenRequest } from "./access/token-source.ts";
