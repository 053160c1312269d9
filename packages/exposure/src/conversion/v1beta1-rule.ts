import {
  type Authentication,
  type JwtConfig,
  type PathPattern,
  type TokenAuthentication,
} from "@spry/function";
import { isJwtConfig } from "./v1beta1-shape.ts";
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
    if (jwt && !isJwtConfig(jwt)) return { kind: "refused", reason: malformed };
    if (!jwt) {
      const authentication = oryAuthentication(config);
      if (authentication.kind === "refused") return authentication;
      result = authentication;
      continue;
    }
    const { authentications = [], authorizations = [] } = jwt;
    result = { kind: "jwt", authentications, authorizations };
  }
  return result;
}

/** Whether v2 can say who may call: with a token, of one issuer with one URL of keys (`isConvertibleJwtConfig` of the original). */
export function isConvertible({ accessStrategies }: RuleV1beta1): boolean {
  return accessStrategies.every(
    ({ handler, config }) => handler !== "jwt" || jwtConfigOf(config) !== undefined,
  );
}

const unsupported = (handler: string) =>
  `access strategy ${JSON.stringify(handler)} is not supported: use no_auth or jwt`;
const malformed =
  "authentications of a jwt access strategy need an issuer and a jwksUri, authorizations lists of texts";
const maxKeySources = 10;

/**
 * Ory's form with any number of issuers and URLs: a token must be signed with a key of one of the URLs, and be of one of
 * the issuers if there are any.
 */
function oryAuthentication(config: unknown): Authentication {
  const { jwks_urls: urls, trusted_issuers: issuers } = (config ?? {}) as OryJwtConfig;
  const refused = (reason: string): Authentication => ({ kind: "refused", reason });
  if (!isTexts(urls) || urls.length === 0)
    return refused("a jwt access strategy needs the URL of its keys: use config.authentications");
  if (issuers !== undefined && !isTexts(issuers))
    return refused("trusted_issuers of a jwt access strategy must be a list of texts");
  const trusted: (string | undefined)[] = issuers && issuers.length > 0 ? issuers : [undefined];
  const authentications = urls.flatMap((jwksUri) =>
    trusted.map((issuer): TokenAuthentication => ({ issuer, jwksUri })),
  );
  if (authentications.length > maxKeySources)
    return refused(`a jwt access strategy may have ${maxKeySources} pairs of issuer and URL`);
  return {
    kind: "jwt",
    authentications,
    authorizations: oryAuthorizations(config as OryJwtConfig),
    withoutToken: 401,
  };
}

function oryAuthorizations({
  required_scope: requiredScopes,
  target_audience: audiences,
}: OryJwtConfig) {
  if (!requiredScopes && !audiences) return [];
  return [{ ...(requiredScopes ? { requiredScopes } : {}), ...(audiences ? { audiences } : {}) }];
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isIstioForm(config: unknown): boolean {
  const { authentications, authorizations } = (config ?? {}) as Record<string, unknown>;
  const isGiven = (value: unknown) => value !== undefined && value !== null && !isEmptyList(value);
  return isGiven(authentications) || isGiven(authorizations);
}

const isEmptyList = (value: unknown) => Array.isArray(value) && value.length === 0;

/** Istio's form, or Ory's with one issuer and one URL. */
function jwtConfigOf(config: unknown): JwtConfig | undefined {
  const { authentications, authorizations, ...rest } = (config ?? {}) as JwtConfig & OryJwtConfig;
  if (isIstioForm(config)) {
    return {
      ...(authentications ? { authentications } : {}),
      ...(authorizations ? { authorizations } : {}),
    };
  }
  const { jwks_urls: urls = [], trusted_issuers: issuers = [] } = rest;
  const [jwksUri] = urls;
  const [issuer] = issuers;
  if (urls.length !== 1 || issuers.length !== 1 || !jwksUri || !issuer) return undefined;
  const required = oryAuthorizations(rest);
  return {
    authentications: [{ issuer, jwksUri }],
    ...(required.length > 0 ? { authorizations: required } : {}),
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
