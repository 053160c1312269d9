import {
  type ApiRuleRule,
  type JwtAuthentication,
  type JwtConfig,
  type TokenAuthentication,
} from "@spry/function";
import { deepEqual } from "@spry/kube";
import { type Failure, failure } from "./failure.ts";
import { headerName } from "./request.ts";

/** An issuer is undefined in a v1beta1 rule that accepts any issuer with these keys. */
type AnyJwtConfig = Omit<JwtConfig, "authentications"> & {
  authentications?: readonly TokenAuthentication[];
};

/** Messages as in the original's `internal/validation/v2alpha1/jwt.go`. */
export function validateJwt(path: string, jwt: AnyJwtConfig): Failure[] {
  return [
    ...validateAuthorizations(`${path}.authorizations`, jwt),
    ...validateAuthentications(`${path}.authentications`, jwt.authentications ?? []),
  ];
}

function validateAuthorizations(path: string, { authorizations }: AnyJwtConfig): Failure[] {
  if (!authorizations) return [];
  if (authorizations.length === 0)
    return [failure(path, "authorizations defined, but no configuration exists")];
  return authorizations.flatMap((authorization, index) => {
    const { requiredScopes, audiences } = authorization ?? {};
    return [
      ...validateClaims(`${path}[${index}].requiredScopes`, "scope", requiredScopes),
      ...validateClaims(`${path}[${index}].audiences`, "audience", audiences),
    ];
  });
}

function validateClaims(path: string, what: string, values: string[] | undefined): Failure[] {
  if (!values) return [];
  if (values.length === 0) return [failure(path, "value is empty")];
  return values.includes("") ? [failure(path, `${what} value is empty`)] : [];
}

function validateAuthentications(
  path: string,
  authentications: readonly TokenAuthentication[],
): Failure[] {
  if (authentications.length === 0)
    return [failure(path, "A JWT config must have at least one authentication")];
  const failures: Failure[] = [];
  let fromHeaders = false;
  let fromParams = false;
  for (const [index, authentication] of authentications.entries()) {
    const at = `${path}[${index}]`;
    const add = (field: string, message: string) =>
      failures.push(failure(`${at}.${field}`, message));
    const { fromHeaders: headers = [], fromParams: params = [] } = authentication;
    const issuer =
      authentication.issuer === undefined ? undefined : problemOfIssuer(authentication.issuer);
    if (issuer) add("issuer", `value is empty or not a valid uri err=${issuer}`);
    const jwksUri = problemOfKeysUri(authentication.jwksUri);
    if (jwksUri) add("jwksUri", `value is empty or not a valid uri err=${jwksUri}`);
    const mixture = "mixture of multiple fromHeaders and fromParams is not supported";
    if (headers.length > 0) {
      if (fromParams) add("fromHeaders", mixture);
      fromHeaders = true;
    }
    if (params.length > 0) {
      if (fromHeaders) add("fromParams", mixture);
      fromParams = true;
    }
    if (headers.length > 1) add("fromHeaders", "multiple fromHeaders are not supported");
    if (params.length > 1) add("fromParams", "multiple fromParams are not supported");
    for (const [position, { name }] of headers.entries())
      if (!headerName.test(name)) add(`fromHeaders[${position}].name`, "not a valid header name");
  }
  return failures;
}

/** With a colon it is a URI (RFC 7519, section 4.1.1). */
function problemOfIssuer(issuer: string): string | undefined {
  if (issuer === "") return "value is empty";
  if (!issuer.includes(":") || isAbsolute(issuer)) return undefined;
  return `parse ${JSON.stringify(issuer)}: invalid URI for request`;
}

function problemOfKeysUri(uri: string): string | undefined {
  if (uri === "") return "value is empty";
  if (!isAbsolute(uri)) return `parse ${JSON.stringify(uri)}: invalid URI for request`;
  const { protocol, username, password } = new URL(uri);
  if (protocol !== "https:" && protocol !== "http:") return "keys are fetched over https or http";
  return username || password ? "a URL of keys must not have a user or a password" : undefined;
}

function isAbsolute(uri: string): boolean {
  return URL.canParse(uri);
}

/** Different ways to take a token of one issuer exclude each other, across all rules of an APIRule. */
export function validateSameIssuers(rules: readonly ApiRuleRule[]): Failure[] {
  const seen = new Map<string, JwtAuthentication>();
  return rules.flatMap(({ jwt }, ruleIndex) =>
    (jwt?.authentications ?? []).flatMap((authentication, index) => {
      const key = `${authentication.issuer} ${authentication.jwksUri}`;
      const first = seen.get(key);
      if (!first) seen.set(key, authentication);
      if (!first || takesTokensAlike(first, authentication)) return [];
      return [
        failure(
          `spec.rules[${ruleIndex}].jwt.authentications[${index}]`,
          "multiple jwt configurations that differ for the same issuer",
        ),
      ];
    }),
  );
}

function takesTokensAlike(one: JwtAuthentication, other: JwtAuthentication): boolean {
  return (
    deepEqual(one.fromHeaders ?? [], other.fromHeaders ?? []) &&
    deepEqual(one.fromParams ?? [], other.fromParams ?? [])
  );
}
