import { bounds, methods } from "../bounds.ts";
import {
  anything,
  boolean,
  integer,
  list,
  map,
  object,
  rule,
  type Schema,
  text,
} from "./schema.ts";

/**
 * The schemas of APIRule v2 (v2alpha1 is the same) and v1beta1: fields, patterns and CEL rules of the original
 * (`config/crd/bases/gateway.kyma-project.io_apirules.yaml`), with bounds for every list, map and text, and up to 20
 * hosts where the original has one.
 */
export function apiRuleSchema(): Schema {
  return { ...object({ ...meta, spec: spec(), status: status() }, ["spec"]) };
}

export function apiRuleV1beta1Schema(): Schema {
  return object({ ...meta, spec: specV1beta1(), status: statusV1beta1() });
}

const meta = { apiVersion: text(), kind: text(), metadata: { type: "object" } } satisfies Record<
  string,
  Schema
>;
const label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** The original's, in the escapes of CEL. */
const hostRule = `self.matches('^(?:\\\\*\\\\.(?:${label}\\\\.)+[a-z0-9]{2,63}|(?:${label})(?:(?:\\\\.${label})*(?:\\\\.[a-z0-9]{2,63}))?)$')`;
const hostMessage =
  "Host must be a lowercase RFC 1123 label (must consist of lowercase alphanumeric characters or '-', and must start and end with an lowercase alphanumeric character), a fully qualified domain name, or a wildcard domain name (e.g. *.local.kyma.dev)";
const gatewayRule =
  "self.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$')";
const strategyRule =
  "((has(self.extAuth)?1:0)+(has(self.jwt)?1:0)+((has(self.noAuth)&&self.noAuth==true)?1:0))==1";
const strategyMessage = "One of the following fields must be set: noAuth, jwt, extAuth";
const pathPattern =
  "^((\\/([A-Za-z0-9-._~!$&'()+,;=:@]|%[0-9a-fA-F]{2})*)|(\\/\\{\\*{1,2}\\}))+$|^\\/\\*$";

const timeout = integer(1, bounds.timeoutSeconds);
const methodList = list({ ...text(), enum: [...methods] }, bounds.methods, 1);
const claims = (maxItems: number) => list(text(bounds.claimLength), maxItems);
const corsTexts = list(text(bounds.corsItemLength), bounds.corsItems);

function service(): Schema {
  return object(
    {
      name: text(253),
      namespace: { ...text(63), pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" },
      port: { ...integer(1, 65_535), format: "int32" },
      external: boolean,
    },
    ["name", "port"],
  );
}

function corsPolicy(maxAge: Schema): Schema {
  return object({
    allowCredentials: boolean,
    allowHeaders: corsTexts,
    allowMethods: corsTexts,
    allowOrigins: list(map(text(bounds.originLength), 3), bounds.origins),
    exposeHeaders: corsTexts,
    maxAge,
  });
}

function jwt(): Schema {
  const fromHeader = object({ name: text(bounds.headerNameLength), prefix: text(64) }, ["name"]);
  const authentication = object(
    {
      issuer: text(bounds.uriLength),
      jwksUri: text(bounds.uriLength),
      fromHeaders: list(fromHeader, bounds.fromHeaders),
      fromParams: list(text(bounds.headerNameLength), bounds.fromParams),
    },
    ["issuer", "jwksUri"],
  );
  return object({
    authentications: list(authentication, bounds.authentications),
    authorizations: list(
      object({ audiences: claims(bounds.audiences), requiredScopes: claims(bounds.scopes) }),
      bounds.authorizations,
    ),
  });
}

function spec(): Schema {
  const values = map(text(bounds.headerValueLength), bounds.headers);
  const oneRule: Schema = {
    ...object(
      {
        path: { ...text(bounds.pathLength), pattern: pathPattern },
        methods: methodList,
        service: service(),
        noAuth: boolean,
        jwt: jwt(),
        extAuth: object({ authorizers: list(text(253), 20, 1), restrictions: jwt() }, [
          "authorizers",
        ]),
        timeout,
        request: object({ cookies: values, headers: values }),
      },
      ["methods", "path"],
    ),
    ...rule(strategyRule, strategyMessage),
  };
  const gatewayName = (what: string): Schema => ({
    ...text(127),
    ...rule(gatewayRule, `${what} must be in the namespace/name format`),
  });
  return object(
    {
      hosts: list({ ...text(bounds.hostLength), ...rule(hostRule, hostMessage) }, bounds.hosts, 1),
      service: service(),
      gateway: gatewayName("Gateway"),
      externalGateway: gatewayName("ExternalGateway"),
      corsPolicy: corsPolicy({ ...integer(1), format: "int64" }),
      // What v1beta1 says may have no rules in v2, and must be writable all the same: the webhook refuses none otherwise.
      rules: list(oneRule, bounds.rules),
      timeout,
    },
    ["hosts", "rules"],
  );
}

const time = { ...text(), format: "date-time" };

const claimedHosts = () =>
  list(object({ name: text(bounds.hostLength), since: time }, ["name", "since"]), bounds.hosts);

function status(): Schema {
  return object(
    {
      description: text(),
      hosts: claimedHosts(),
      lastProcessedTime: time,
      observedGeneration: { type: "integer", format: "int64" },
      state: { ...text(), enum: ["Processing", "Deleting", "Ready", "Error", "Warning"] },
    },
    ["state"],
  );
}

function specV1beta1(): Schema {
  const handler = object({ handler: text(64), config: anything }, ["handler"]);
  const oneRule = object(
    {
      path: { ...text(bounds.pathLength), pattern: "^([0-9a-zA-Z./*()?!\\\\_-]+)" },
      methods: methodList,
      service: service(),
      accessStrategies: list(handler, 16, 1),
      mutators: list(handler, 16),
      timeout,
    },
    ["accessStrategies", "methods", "path"],
  );
  return object(
    {
      host: {
        ...text(256),
        minLength: 3,
        pattern: "^([a-zA-Z0-9][a-zA-Z0-9-_]*\\.)*[a-zA-Z0-9]*[a-zA-Z0-9-_]*[[a-zA-Z0-9]+$",
      },
      service: service(),
      gateway: { ...text(253), pattern: "^[0-9a-z-_]+(\\/[0-9a-z-_]+|(\\.[0-9a-z-_]+)*)$" },
      corsPolicy: corsPolicy({ ...text(32), format: "duration" }),
      rules: list(oneRule, bounds.rules, 1),
      timeout,
    },
    ["gateway", "host", "rules"],
  );
}

function statusV1beta1(): Schema {
  const part = object({ code: text(), desc: text() });
  return object({
    APIRuleStatus: part,
    virtualServiceStatus: part,
    accessRuleStatus: part,
    requestAuthenticationStatus: part,
    authorizationPolicyStatus: part,
    hosts: claimedHosts(),
    lastProcessedTime: time,
    observedGeneration: { type: "integer", format: "int64" },
  });
}
