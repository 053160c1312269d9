/**
 * The original's `config.yaml` (its CLI's own documentation): a Function with its subscriptions and APIRules. `schemaVersion` v0
 * is the default; v1 has subscriptions of the newer kind. Both spellings of `resource` are read, because its documentation says
 * `resources` and its code `resource`.
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Function, functions, runtimes } from "@spry/function";
import { apiVersionOf, type EnvVar, type UnknownObject } from "@spry/kube";
import { isInside } from "../inside.ts";
import { UserError } from "../user-error.ts";

export const kymaConfigName = "config.yaml";

/** What is read of it; other keys are refused. */
export interface KymaConfig {
  schemaVersion?: string;
  name: string;
  namespace?: string;
  labels?: Record<string, string>;
  runtimeLabels?: Record<string, string>;
  runtimeAnnotations?: Record<string, string>;
  runtime: string;
  runtimeImageOverride?: string;
  source: {
    sourceType: string;
    sourcePath?: string;
    sourceHandlerName?: string;
    depsHandlerName?: string;
    url?: string;
    /** Of its version v1alpha1; the same as `url`. */
    repository?: string;
    reference?: string;
    baseDir?: string;
    credentialsSecretName?: string;
    credentialsType?: string;
  };
  resource?: Amounts;
  resources?: Amounts;
  env?: EnvVar[];
  subscriptions?: KymaSubscription[];
  apiRules?: KymaApiRule[];
}

type Amounts = Record<"limits" | "requests", Record<string, string> | undefined>;

interface KymaSubscription {
  name?: string;
  typeMatching?: string;
  source?: string;
  types?: string[];
  protocol?: string;
  filter?: {
    filters?: { eventSource?: { value?: string }; eventType?: { value?: string } }[];
  };
}

interface KymaApiRule {
  name?: string;
  gateway?: string;
  service: { host: string; port?: number };
  rules: {
    path?: string;
    methods?: string[];
    accessStrategies?: { handler?: string; config?: Record<string, unknown> }[];
  }[];
}

const knownKeys: ReadonlySet<string> = new Set([
  ..."schemaVersion name namespace labels runtimeLabels runtimeAnnotations runtime".split(" "),
  ..."runtimeImageOverride source resource resources env subscriptions apiRules".split(" "),
]);
export const knownVersions = ["v0", "v1"];
/** For editors, as the original's `get schema serverless`. */
export const kymaConfigSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "config.yaml of a Function",
  type: "object",
  required: ["name", "runtime", "source"],
  additionalProperties: false,
  properties: {
    ...Object.fromEntries([...knownKeys].map((key) => [key, {}])),
    schemaVersion: { enum: knownVersions },
    name: { type: "string" },
    runtime: { enum: runtimes.map(({ name }) => name) },
    source: {
      type: "object",
      required: ["sourceType"],
      properties: { sourceType: { enum: ["inline", "git"] } },
    },
  },
};
const defaultGateway = "kyma-system/kyma-gateway";

/** Whether a document without apiVersion and kind is one. */
export function isKymaConfig(document: unknown): document is KymaConfig {
  const { source, kind, apiVersion } = (document ?? {}) as Record<string, unknown>;
  const type = (source as { sourceType?: unknown } | undefined)?.sourceType;
  return kind === undefined && apiVersion === undefined && typeof type === "string";
}

/** Throws a UserError that names the file and the key. */
export function checkKymaConfig(config: KymaConfig, origin: string): void {
  const { schemaVersion = "v0", name, runtime, source } = config;
  if (!knownVersions.includes(schemaVersion))
    throw new UserError(
      `${origin}: schemaVersion ${schemaVersion} is newer than this command knows`,
      `use one of ${knownVersions.join(", ")}, or a newer Spry`,
    );
  const unknown = Object.keys(config).find((key) => !knownKeys.has(key));
  if (unknown !== undefined)
    throw new UserError(
      `${origin}: ${unknown} is not a known key`,
      `use some of ${[...knownKeys].join(", ")}`,
    );
  if (typeof name !== "string" || name === "")
    throw new UserError(`${origin}: name is missing`, "write it as name: my-function");
  if (typeof runtime !== "string" || runtime === "")
    throw new UserError(`${origin}: runtime is missing`, "write it as runtime: nodejs24");
  if (!["inline", "git"].includes(source.sourceType))
    throw new UserError(
      `${origin}: source.sourceType ${source.sourceType} is not known`,
      "use inline or git",
    );
}

/** The objects of a configuration whose file is `file`: the Function first. */
export function objectsOfKymaConfig(config: KymaConfig, file: string): Identified[] {
  checkKymaConfig(config, file);
  const fn = functionOfKymaConfig(config, path.dirname(file));
  const subscriptions = (config.subscriptions ?? []).map((each, index) =>
    subscriptionOf(config, each, index),
  );
  const rules = (config.apiRules ?? []).map((each, index) => apiRuleOf(config, each, index));
  return [fn as unknown as Identified, ...subscriptions, ...rules];
}

type Identified = UnknownObject & { apiVersion: string; kind: string };

export function functionOfKymaConfig(config: KymaConfig, directory: string): Function {
  const { name, namespace, labels, runtimeLabels, runtimeAnnotations, runtime } = config;
  const amounts = config.resource ?? config.resources;
  return {
    apiVersion: apiVersionOf(functions),
    kind: functions.kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      labels: { "app.kubernetes.io/name": name, ...labels },
    },
    spec: {
      runtime,
      ...(config.runtimeImageOverride && { runtimeImageOverride: config.runtimeImageOverride }),
      source: sourceOf(config, directory),
      ...(config.env && { env: config.env }),
      ...(amounts && {
        resourceConfiguration: {
          function: {
            resources: {
              ...(amounts.limits && { limits: amounts.limits }),
              ...(amounts.requests && { requests: amounts.requests }),
            },
          },
        },
      }),
      ...(runtimeLabels && { labels: runtimeLabels }),
      ...(runtimeAnnotations && { annotations: runtimeAnnotations }),
    },
  };
}

function sourceOf({ source, runtime }: KymaConfig, directory: string): Function["spec"]["source"] {
  if (source.sourceType === "git") {
    const { url, repository, reference = "main", baseDir = "/" } = source;
    const { credentialsSecretName: secretName, credentialsType = "basic" } = source;
    const type = credentialsType === "key" ? "key" : "basic";
    return {
      gitRepository: {
        url: url ?? repository ?? "",
        reference,
        baseDir,
        ...(secretName && { auth: { type, secretName } }),
      },
    };
  }
  const [handler, manifest] = kymaFilesOf(runtime);
  const at = path.resolve(directory, source.sourcePath ?? ".");
  const handlerFile = path.join(at, source.sourceHandlerName ?? handler);
  const manifestFile = path.join(at, source.depsHandlerName ?? manifest);
  if (!existsSync(handlerFile))
    throw new UserError(
      `the handler ${handlerFile} does not exist`,
      "check source.sourcePath and source.sourceHandlerName of config.yaml",
    );
  const read = (file: string) => {
    if (!isInside(directory, file))
      throw new UserError(
        `${file} is outside of ${directory}, the directory of config.yaml`,
        "only files of that directory become a Function's source: copy it there",
      );
    return readFileSync(file, "utf8");
  };
  return {
    inline: {
      source: read(handlerFile),
      ...(existsSync(manifestFile) && { dependencies: read(manifestFile) }),
    },
  };
}

/** Names of the handler and of what declares its packages. */
export function kymaFilesOf(runtime: string): [handler: string, manifest: string] {
  const language = runtimes.find(({ name }) => name === runtime)?.language;
  const isPython = language ? language === "python" : runtime.startsWith("python");
  return isPython ? ["handler.py", "requirements.txt"] : ["handler.js", "package.json"];
}

const numbered = (name: string, index: number): string => (index === 0 ? name : `${name}-${index}`);

function subscriptionOf(
  config: KymaConfig,
  { name, typeMatching = "standard", source = "", types = [], filter }: KymaSubscription,
  index: number,
): Identified {
  // v0 has a filter for each type, with the same source.
  const filters = filter?.filters ?? [];
  const spec = {
    sink: `http://${config.name}.${config.namespace ?? "default"}.svc.cluster.local`,
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

function apiRuleOf(
  config: KymaConfig,
  { name, gateway = defaultGateway, service, rules }: KymaApiRule,
  index: number,
): Identified {
  return {
    apiVersion: "gateway.kyma-project.io/v2",
    kind: "APIRule",
    metadata: metadataOf(config, name ?? numbered(config.name, index)),
    spec: {
      hosts: [service.host],
      gateway: gatewayOf(gateway),
      service: { name: config.name, port: service.port ?? 80 },
      rules: rules.map(({ path: where = "/.*", methods = allMethods, accessStrategies = [] }) => ({
        path: where === "/.*" ? "/*" : where,
        methods,
        ...accessOf(accessStrategies),
      })),
    },
  };
}

const allMethods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** `kyma-gateway.kyma-system.svc.cluster.local`, of its first version, is `kyma-system/kyma-gateway`. */
function gatewayOf(gateway: string): string {
  const [, name, namespace] = /^([^.]+)\.([^.]+)\.svc\.cluster\.local$/.exec(gateway) ?? [];
  return name && namespace ? `${namespace}/${name}` : gateway;
}

function accessOf(strategies: NonNullable<KymaApiRule["rules"][number]["accessStrategies"]>) {
  const [{ handler = "allow", config = {} } = {}] = strategies;
  if (handler === "allow" || handler === "noop" || handler === "no_auth") return { noAuth: true };
  const issuers = (config["trusted_issuers"] ?? config["trustedIssuers"]) as string[] | undefined;
  const keys = (config["jwks_urls"] ?? config["jwksUrls"]) as string[] | undefined;
  if (handler !== "jwt" || !issuers?.[0] || !keys?.[0])
    throw new UserError(
      `the access strategy ${handler} cannot be applied`,
      "use allow, or jwt with jwksUrls and trustedIssuers",
    );
  return {
    jwt: { authentications: issuers.map((issuer, i) => ({ issuer, jwksUri: keys[i] ?? keys[0] })) },
  };
}

const metadataOf = ({ namespace }: KymaConfig, name: string) => ({
  name,
  ...(namespace !== undefined && { namespace }),
});
