import { type Authentication, type JwtConfig, type PathPattern } from "@spry/function";
import { type Handler, type RuleV1beta1 } from "./v1beta1.ts";

const template = /^((\/([A-Za-z0-9-._~!$&'()+,;=:@]|%[0-9a-fA-F]{2})*)|(\/\{\*{1,2}\}))+$|^\/\*$/;
/** What means something else in a regular expression; a dot does, too, and is taken as itself: `/favicon.ico`. */
const meta = /[()+$]/;

/**
 * The path of a v1beta1 rule. It is a regular expression; what v2 can say, it says: paths without operators, `/.*`, and
 * a path that ends in `/.*`.
 */
export function pathOfV1beta1(path: string): PathPattern {
  if (path === "/*" || path === "/.*") return { kind: "template", template: "/{**}" };
  if (template.test(path) && !meta.test(path)) return { kind: "template", template: path };
  const prefix = path.endsWith("/.*") ? path.slice(0, -"/.*".length) : undefined;
  if (prefix !== undefined && (prefix === "" || (template.test(prefix) && !meta.test(prefix))))
    return { kind: "template", template: `${prefix}/{**}` };
  return { kind: "regex", regex: path };
}

/** Handlers that let every request pass: without the Ory stack they do not differ. */
const open = new Set(["allow", "no_auth", "noop"]);

interface OryJwtConfig {
  jwks_urls?: string[];
  trusted_issuers?: string[];
  required_scope?: string[];
  target_audience?: string[];
}

/** Who may call: of several strategies each must be understood, and a JWT is required if one of them requires it. */
export function authenticationOfV1beta1({ accessStrategies }: RuleV1beta1): Authentication {
  let result: Authentication = { kind: "none" };
  for (const { handler, config } of accessStrategies) {
    if (open.has(handler)) continue;
    if (handler !== "jwt") return { kind: "refused", reason: unsupported(handler) };
    const jwt = jwtConfigOf(config);
    if (!jwt) return { kind: "refused", reason: ambiguous };
    const { authentications = [], authorizations = [] } = jwt;
    result = { kind: "jwt", authentications, authorizations };
  }
  return result;
}

const unsupported = (handler: string) =>
  `access strategy ${JSON.stringify(handler)} is not supported: use no_auth or jwt`;
const ambiguous =
  "a jwt access strategy needs one issuer with one URL of keys: use config.authentications";

/** Istio's form, or Ory's with one issuer and one URL (`isConvertibleJwtConfig` of the original). */
function jwtConfigOf(config: unknown): JwtConfig | undefined {
  const { authentications, authorizations, ...rest } = (config ?? {}) as JwtConfig & OryJwtConfig;
  if (authentications?.length || authorizations?.length) {
    return {
      ...(authentications ? { authentications } : {}),
      ...(authorizations ? { authorizations } : {}),
    };
  }
  const { jwks_urls: urls = [], trusted_issuers: issuers = [] } = rest;
  const [jwksUri] = urls;
  const [issuer] = issuers;
  if (urls.length !== 1 || issuers.length !== 1 || !jwksUri || !issuer) return undefined;
  const { required_scope: requiredScopes, target_audience: audiences } = rest;
  const authorization = {
    ...(requiredScopes ? { requiredScopes } : {}),
    ...(audiences ? { audiences } : {}),
  };
  const isEmpty = Object.keys(authorization).length === 0;
  return {
    authentications: [{ issuer, jwksUri }],
    ...(isEmpty ? {} : { authorizations: [authorization] }),
  };
}

/** The mutators `header` and `cookie`, as v2 has them; undefined without mutators. */
export function requestOfV1beta1(
  mutators: Handler[] | undefined,
): { headers?: Record<string, string>; cookies?: Record<string, string> } | undefined {
  if (!mutators || mutators.length === 0) return undefined;
  const field = (handler: string, name: string) => {
    const found = mutators.findLast((each) => each.handler === handler)?.config;
    const values = (found as Record<string, unknown> | undefined)?.[name];
    return isTextMap(values) ? { [name]: values } : {};
  };
  return { ...field("header", "headers"), ...field("cookie", "cookies") };
}

function isTextMap(value: unknown): value is Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => typeof each === "string");
}
