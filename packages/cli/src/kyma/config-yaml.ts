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
import { checkValue } from "../project/check-value.ts";
import { lineOf } from "../project/line-of.ts";
import { UserError } from "../user-error.ts";
import { apiRuleOf, subscriptionOf } from "./children.ts";
import { knownVersions, kymaConfigSchema } from "./schema.ts";

export const kymaConfigName = "config.yaml";

/** What is read of it; other keys are refused. */
export interface KymaConfig {
  schemaVersion?: string;
  name: string;
  namespace?: string;
  labels?: Scalars;
  runtimeLabels?: Scalars;
  runtimeAnnotations?: Scalars;
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
  env?: {
    name: string;
    value?: Scalars[string];
    valueFrom?: { configMapKeyRef?: Reference; secretKeyRef?: Reference };
  }[];
  subscriptions?: KymaSubscription[];
  apiRules?: KymaApiRule[];
}

/** Numbers are texts, as in the original. */
type Scalars = Record<string, string | number | boolean>;
type Reference = Record<"name" | "key", string> | Record<"Name" | "Key", string>;
type Amounts = Record<"limits" | "requests", Scalars | undefined>;

export interface KymaSubscription {
  name?: string;
  typeMatching?: string;
  source?: string;
  types?: string[];
  protocol?: string;
  filter?: {
    filters?: { eventSource?: { value?: string }; eventType?: { value?: string } }[];
  };
}

export interface KymaApiRule {
  name?: string;
  gateway?: string;
  service: { host: string; port?: number };
  rules: {
    path?: string;
    methods?: string[];
    accessStrategies?: { handler?: string; config?: Record<string, unknown> }[];
  }[];
}

/** Where scalars are text, however they are written. */
export const kymaTexts = [
  ["env", "*", "name"],
  ["env", "*", "value"],
  ["labels", "*"],
  ["runtimeLabels", "*"],
  ["runtimeAnnotations", "*"],
  ["resource", "*", "*"],
  ["resources", "*", "*"],
];

/** Whether a document without apiVersion and kind is one. */
export function isKymaConfig(document: unknown): document is KymaConfig {
  const { source, kind, apiVersion } = (document ?? {}) as Record<string, unknown>;
  const type = (source as { sourceType?: unknown } | undefined)?.sourceType;
  return kind === undefined && apiVersion === undefined && typeof type === "string";
}

/** Throws a UserError that names the file, the line (in `text`, if that is given) and the key. */
export function checkKymaConfig(config: KymaConfig, origin: string, text = ""): void {
  const { schemaVersion = "v0", source } = config;
  if (!knownVersions.includes(schemaVersion))
    throw new UserError(
      `${origin}: schemaVersion ${schemaVersion} is newer than this command knows`,
      `use one of ${knownVersions.join(", ")}, or a newer Spry`,
    );
  const problem = checkValue(kymaConfigSchema, config);
  if (problem) {
    const line = lineOf(text, problem.path);
    throw new UserError(
      `${origin}${line ? `:${line}` : ""}: ${[problem.path.join("."), problem.message].filter(Boolean).join(" ")}`,
      problem.wayOut,
    );
  }
  if (source.sourceType === "git" && !(source.url ?? source.repository))
    throw new UserError(`${origin}: source.url is missing`, "write the repository's URL there");
}

export interface ReadContext {
  /** The text of the file, for the lines of mistakes. */
  text?: string;
  /** Of objects whose configuration names none. */
  namespace: () => string;
}

/** The objects of a configuration whose file is `file`: the Function first. */
export function objectsOfKymaConfig(
  config: KymaConfig,
  file: string,
  { text, namespace: defaultNamespace }: ReadContext,
): Identified[] {
  checkKymaConfig(config, file, text);
  const fn = functionOfKymaConfig(config, path.dirname(file));
  const { subscriptions = [], apiRules = [] } = config;
  const namespace = subscriptions.length > 0 ? (config.namespace ?? defaultNamespace()) : "";
  return [
    fn as unknown as Identified,
    ...subscriptions.map((each, index) => subscriptionOf(config, each, { index, namespace })),
    ...apiRules.map((each, index) => apiRuleOf(config, each, { index, origin: file })),
  ];
}

export type Identified = UnknownObject & { apiVersion: string; kind: string };

export function functionOfKymaConfig(config: KymaConfig, directory: string): Function {
  const { name, namespace, labels, runtimeLabels, runtimeAnnotations, runtime } = config;
  const amounts = config.resource ?? config.resources;
  return {
    apiVersion: apiVersionOf(functions),
    kind: functions.kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      labels: { "app.kubernetes.io/name": name, ...textsOf(labels) },
    },
    spec: {
      runtime,
      ...(config.runtimeImageOverride && { runtimeImageOverride: config.runtimeImageOverride }),
      source: sourceOf(config, directory),
      ...(config.env && { env: variablesOf(config) }),
      ...(amounts && {
        resourceConfiguration: {
          function: {
            resources: {
              ...(amounts.limits && { limits: textsOf(amounts.limits) }),
              ...(amounts.requests && { requests: textsOf(amounts.requests) }),
            },
          },
        },
      }),
      ...(runtimeLabels && { labels: textsOf(runtimeLabels) }),
      ...(runtimeAnnotations && { annotations: textsOf(runtimeAnnotations) }),
    },
  };
}

/** Numbers as texts. */
export const textsOf = (values: Scalars = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));

export const variablesOf = ({ env = [] }: KymaConfig): EnvVar[] =>
  env.map(({ name, value, valueFrom: { configMapKeyRef, secretKeyRef } = {} }) => ({
    name,
    ...(value !== undefined && { value: String(value) }),
    ...(configMapKeyRef && { valueFrom: { configMapKeyRef: referenceOf(configMapKeyRef) } }),
    ...(secretKeyRef && { valueFrom: { secretKeyRef: referenceOf(secretKeyRef) } }),
  }));

const referenceOf = (of: Reference) =>
  "Name" in of ? { name: of.Name, key: of.Key } : { name: of.name, key: of.key };

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
