export {
  type ApiRule,
  type ApiRuleRule,
  apiRules,
  type ApiRuleService,
  type ApiRuleSpec,
  type ApiRuleState,
  type ApiRuleStatus,
  apiRulesV2alpha1,
  type CorsPolicy,
  type JwtAuthentication,
  type JwtAuthorization,
  type JwtConfig,
  type JwtHeader,
  type StringMatch,
} from "./api-rule.ts";
export {
  type Authentication,
  certificatesSecretName,
  type ExposedHost,
  type ExposedRule,
  type HostCertificate,
  ownCertificatePrefix,
  type PathPattern,
  type RouteTarget,
  type TokenAuthentication,
} from "./exposed-host.ts";
export {
  type GatewayServer,
  type GatewayTls,
  type IstioGateway,
  istioGateways,
  type IstioGatewaySpec,
} from "./istio-gateway.ts";
