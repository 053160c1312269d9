import { type JwtConfig } from "@spry/function";
import { type ApiRuleV1beta1Spec } from "./v1beta1.ts";

type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === "string";
const number: Check = (value) => typeof value === "number";
const flag: Check = (value) => typeof value === "boolean";
const anything: Check = () => true;
const listOf =
  (item: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(item);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
/** With these fields, and others that are not read. */
const shape =
  (fields: Record<string, Check>): Check =>
  (value) =>
    isMap(value) && Object.entries(fields).every(([name, check]) => check(value[name]));

const service = shape({ name: text, port: number, namespace: optional(text) });
const handler = shape({ handler: text, config: anything });
const rule = shape({
  path: text,
  methods: listOf(text),
  service: optional(service),
  accessStrategies: listOf(handler),
  mutators: optional(listOf(handler)),
  timeout: optional(number),
});
const origin: Check = (value) => isMap(value) && Object.values(value).every(text);
const corsPolicy = shape({
  allowOrigins: optional(listOf(origin)),
  allowMethods: optional(listOf(text)),
  allowHeaders: optional(listOf(text)),
  exposeHeaders: optional(listOf(text)),
  allowCredentials: optional(flag),
  maxAge: optional(text),
});
const spec = shape({
  host: optional(text),
  gateway: optional(text),
  service: optional(service),
  corsPolicy: optional(corsPolicy),
  rules: optional(listOf(rule)),
  timeout: optional(number),
});

/** Whether a value has the types of the schema of v1beta1, for texts that no API server has checked: annotations. */
export function isV1beta1Spec(value: unknown): value is ApiRuleV1beta1Spec {
  return spec(value);
}

const jwtConfig = shape({
  authentications: optional(
    listOf(
      shape({
        issuer: text,
        jwksUri: text,
        fromHeaders: optional(listOf(shape({ name: text, prefix: optional(text) }))),
        fromParams: optional(listOf(text)),
      }),
    ),
  ),
  authorizations: optional(
    listOf(shape({ requiredScopes: optional(listOf(text)), audiences: optional(listOf(text)) })),
  ),
});

/** The same for the configuration of a jwt strategy, which the schema leaves open. */
export function isJwtConfig(value: unknown): value is JwtConfig {
  return jwtConfig(value);
}
