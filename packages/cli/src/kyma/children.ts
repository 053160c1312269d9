/** The Subscriptions and APIRules of a `config.yaml`, in the versions that are current. */
import { UserError } from "../user-error.ts";
import {
  type Identified,
  type KymaApiRule,
  type KymaConfig,
  type KymaSubscription,
} from "./config-yaml.ts";

const defaultGateway = "kyma-system/kyma-gateway";
const allMethods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

const numbered = (name: string, index: number): string => (index === 0 ? name : `${name}-${index}`);

const metadataOf = ({ namespace }: KymaConfig, name: string) => ({
  name,
  ...(namespace !== undefined && { namespace }),
});

/** `namespace`: of the Function, where the configuration names none. */
export function subscriptionOf(
  config: KymaConfig,
  { name, typeMatching = "standard", source = "", types = [], filter }: KymaSubscription,
  { index, namespace }: { index: number; namespace: string },
): Identified {
  // v0 has a filter for each type, with the same source.
  const filters = filter?.filters ?? [];
  const spec = {
    sink: `http://${config.name}.${config.namespace ?? namespace}.svc.cluster.local`,
    typeMatching,
    source: source || filters[0]?.eventSource?.value || "",
    types: [...types, ...filters.flatMap(({ eventType }) => eventType?.value ?? [])],
  };
  return {
    apiVersion: "eventing.kyma-project.io/v1alpha2",
    kind: "Subscription",
    metadata: metadataOf(config, name ?? numbered(config.name, index)),
    spec,
  };
}

/** Throws a UserError for what the current version cannot say: who may call must not change silently. */
export function apiRuleOf(
  config: KymaConfig,
  { name, gateway = defaultGateway, service, rules }: KymaApiRule,
  { index, origin }: { index: number; origin: string },
): Identified {
  return {
    apiVersion: "gateway.kyma-project.io/v2",
    kind: "APIRule",
    metadata: metadataOf(config, name ?? numbered(config.name, index)),
    spec: {
      hosts: [service.host],
      gateway: gatewayOf(gateway),
      service: { name: config.name, port: service.port ?? 80 },
      rules: rules
        .map(({ path = "/.*", methods = allMethods, accessStrategies = [] }) => ({
          path: pathOf(path, origin),
          methods,
          ...accessOf(accessStrategies, origin),
        }))
        .toSorted((a, b) => narrowness(b.path) - narrowness(a.path)),
    },
  };
}

/** The first rule that matches decides, and one that an earlier rule hides is refused. */
const narrowness = (path: string): number => {
  if (path === "/*") return -1;
  return path.endsWith("/{**}") ? path.length : Number.MAX_SAFE_INTEGER;
};

/** `kyma-gateway.kyma-system.svc.cluster.local`, of its first version, is `kyma-system/kyma-gateway`. */
function gatewayOf(gateway: string): string {
  const [, name, namespace] = /^([^.]+)\.([^.]+)\.svc\.cluster\.local$/.exec(gateway) ?? [];
  return name && namespace ? `${namespace}/${name}` : gateway;
}

/** Of a regular expression; the current version has only what is below a path. */
function pathOf(path: string, origin: string): string {
  if (path === "/.*") return "/*";
  const plain = path.replace(/\/\.\*$/, "");
  if (/[()[\]|+?^$\\]|\.\*/.test(plain))
    throw new UserError(
      `${origin}: apiRules: the path ${path} is a regular expression`,
      "use a path as it is, or one that ends in /.* for everything below it",
    );
  return plain === path ? path : `${plain}/{**}`;
}

type Strategies = NonNullable<KymaApiRule["rules"][number]["accessStrategies"]>;
const open = new Set(["allow", "noop", "no_auth"]);

/** Of several strategies, one that asks for a token decides. */
function accessOf(strategies: Strategies, origin: string) {
  const closed = strategies.filter(({ handler = "allow" }) => !open.has(handler));
  const [strategy] = closed;
  if (!strategy) return { noAuth: true };
  const other = closed.find(({ handler }) => handler !== "jwt") ?? closed[1];
  if (other)
    throw new UserError(
      `${origin}: apiRules: the access strategy ${other.handler} cannot be applied${other.handler === "jwt" ? " twice" : ""}`,
      "use allow, or one jwt with jwksUrls and trustedIssuers",
    );
  const { config = {} } = strategy;
  const issuers = textsOf(config, "trustedIssuers", "trusted_issuers");
  const keys = textsOf(config, "jwksUrls", "jwks_urls");
  if (issuers.length === 0 || keys.length === 0)
    throw new UserError(
      `${origin}: apiRules: the access strategy jwt needs jwksUrls and trustedIssuers`,
      "write both as lists of URLs",
    );
  const requiredScopes = textsOf(config, "requiredScope", "required_scope");
  const audiences = textsOf(config, "targetAudience", "target_audience");
  const authorization = {
    ...(requiredScopes.length > 0 && { requiredScopes }),
    ...(audiences.length > 0 && { audiences }),
  };
  return {
    jwt: {
      authentications: issuers.map((issuer, i) => ({ issuer, jwksUri: keys[i] ?? keys[0] })),
      ...(Object.keys(authorization).length > 0 && { authorizations: [authorization] }),
    },
  };
}

/** In the documentation's spelling, or in that of the objects. */
function textsOf(config: Record<string, unknown>, ...names: string[]): string[] {
  const value = names.map((name) => config[name]).find((each) => each !== undefined) ?? [];
  return [value].flat().map(String);
}
