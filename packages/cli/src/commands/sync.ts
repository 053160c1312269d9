import { existsSync } from "node:fs";
import path from "node:path";
import { dump } from "js-yaml";
import { apiRules, type Function, type JwtConfig } from "@spry/function";
import { isForbidden, isNotFound, type KubeClient, type UnknownObject } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { kymaConfigName, kymaFilesOf } from "../kyma/config-yaml.ts";
import { readKymaConfig } from "../project/config.ts";
import { shownPath } from "../project/shown-path.ts";
import { spryCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";
import { writeFiles } from "../write-files.ts";

export interface SyncOptions extends GlobalOptions {
  dir?: string;
  schemaVersion: string;
  force?: boolean;
}

/** The original's `sync function`: writes a deployed Function, and what refers to it, as files. */
export async function sync(name: string, options: SyncOptions): Promise<void> {
  if (!["v0", "v1"].includes(options.schemaVersion))
    throw new UserError(`${options.schemaVersion} is not a version of config.yaml`, "use v0 or v1");
  const { client, namespace } = await connect(options);
  const fn = await findFunction(client, namespace, name);
  if (fn.spec.source.image)
    throw new UserError(
      `Function ${name} was deployed from a directory: its files are there, and not in the Function`,
      "deploy that directory again with `spry deploy`",
    );
  const root = path.resolve(options.dir ?? ".");
  const files = filesOf(fn, options.schemaVersion, {
    rules: await apiRulesOf(client, fn),
    subscriptions: await subscriptionsOf(client, fn),
  });
  const inTheWay = Object.keys(files).filter((file) => existsSync(path.join(root, file)));
  if (inTheWay.length > 0 && !options.force && !isOfSame(root, fn))
    throw new UserError(
      `${shownPath(root)} already has ${inTheWay.join(", ")}: nothing was written`,
      "choose another directory with --dir, or overwrite these files with --force",
    );
  writeFiles(root, files);
  for (const file of Object.keys(files)) console.log(shownPath(path.join(root, file)));
  const lost = withoutKeys.filter((field) => fn.spec[field] !== undefined);
  if (lost.length > 0)
    console.error(
      `config.yaml has no keys for ${lost.join(", ")}: \`${spryCommand(`get ${name} -o yaml`)}\` writes everything`,
    );
}

/** Whether a directory has been written for this very Function: what is deployed replaces what is there. */
function isOfSame(root: string, { metadata }: Function): boolean {
  const { name, namespace = metadata.namespace } =
    readKymaConfig(path.join(root, kymaConfigName))?.config ?? {};
  return name === metadata.name && namespace === metadata.namespace;
}

/** What a Function can have that the original's file cannot say. */
const withoutKeys = ["scaleConfig", "secretMounts", "schedules"] as const;

interface Referring {
  rules: UnknownObject[];
  subscriptions: UnknownObject[];
}

function filesOf(
  fn: Function,
  schemaVersion: string,
  referring: Referring,
): Record<string, string> {
  const { metadata, spec } = fn;
  const { inline, gitRepository: git } = spec.source;
  const [handler, manifest] = kymaFilesOf(spec.runtime ?? "nodejs24");
  const { "app.kubernetes.io/name": _own, ...labels } = metadata.labels ?? {};
  const config = {
    schemaVersion,
    name: metadata.name,
    namespace: metadata.namespace,
    ...(Object.keys(labels).length > 0 && { labels }),
    runtime: spec.runtime ?? "nodejs24",
    ...(spec.runtimeImageOverride && { runtimeImageOverride: spec.runtimeImageOverride }),
    source: git
      ? {
          sourceType: "git",
          url: git.url,
          reference: git.reference,
          baseDir: git.baseDir,
          ...(git.auth && {
            credentialsSecretName: git.auth.secretName,
            credentialsType: git.auth.type,
          }),
        }
      : { sourceType: "inline", sourceHandlerName: handler, depsHandlerName: manifest },
    ...(spec.resourceConfiguration?.function?.resources && {
      resource: spec.resourceConfiguration.function.resources,
    }),
    ...(spec.env && { env: spec.env }),
    ...(spec.labels && { runtimeLabels: spec.labels }),
    ...(spec.annotations && { runtimeAnnotations: spec.annotations }),
    ...(referring.subscriptions.length > 0 && {
      subscriptions: referring.subscriptions.map((each) => subscriptionIn(each, schemaVersion)),
    }),
    ...(referring.rules.length > 0 && { apiRules: referring.rules.map(ruleIn) }),
  };
  return {
    [kymaConfigName]: dump(config, { skipInvalid: true, lineWidth: -1 }),
    ...(inline && { [handler]: inline.source }),
    ...(inline?.dependencies !== undefined && { [manifest]: inline.dependencies }),
  };
}

function subscriptionIn({ metadata, ...rest }: UnknownObject, schemaVersion: string) {
  const {
    source = "",
    types = [],
    typeMatching = "standard",
  } = (rest as unknown as { spec: { source?: string; types?: string[]; typeMatching?: string } })
    .spec;
  if (schemaVersion === "v1") return { name: metadata.name, typeMatching, source, types };
  const filters = types.map((type) => ({
    eventSource: { property: "source", type: "exact", value: source },
    eventType: { property: "type", type: "exact", value: type },
  }));
  return { name: metadata.name, filter: { filters } };
}

function ruleIn({ metadata, ...rest }: UnknownObject) {
  interface Spec {
    hosts?: string[];
    gateway?: string;
    service?: { port?: number };
    rules?: {
      path: string;
      methods?: string[];
      noAuth?: boolean;
      jwt?: JwtConfig;
    }[];
  }
  const { hosts = [], gateway, service, rules = [] } = (rest as unknown as { spec: Spec }).spec;
  return {
    name: metadata.name,
    gateway,
    service: { host: hosts[0], port: service?.port ?? 80 },
    rules: rules.map((rule) => ({
      path: rule.path.replace(/\/(?:\*|\{\*\*\})$/, "/.*"),
      methods: rule.methods,
      accessStrategies: [
        rule.jwt
          ? {
              handler: "jwt",
              config: {
                jwksUrls: rule.jwt.authentications?.map(({ jwksUri }) => jwksUri),
                trustedIssuers: rule.jwt.authentications?.map(({ issuer }) => issuer),
                requiredScope: rule.jwt.authorizations?.[0]?.requiredScopes,
                targetAudience: rule.jwt.authorizations?.[0]?.audiences,
              },
            }
          : { handler: "allow" },
      ],
    })),
  };
}

async function apiRulesOf(client: KubeClient, { metadata }: Function): Promise<UnknownObject[]> {
  const { namespace, name } = metadata;
  const items = await listed(async () => (await client.list(apiRules, { namespace })).items);
  return (items as unknown as UnknownObject[]).filter(
    (rule) => (rule["spec"] as { service?: { name?: string } } | undefined)?.service?.name === name,
  );
}

async function subscriptionsOf(
  client: KubeClient,
  { metadata }: Function,
): Promise<UnknownObject[]> {
  const { namespace = "", name = "" } = metadata;
  const items = await listed(async () => {
    const path = `/apis/eventing.kyma-project.io/v1alpha2/namespaces/${namespace}/subscriptions`;
    const response = await client.raw("GET", path);
    return ((await response.json()) as { items: UnknownObject[] }).items;
  });
  const sink = `http://${name}.${namespace}.svc.cluster.local`;
  return items.filter((each) =>
    (each["spec"] as { sink?: string } | undefined)?.sink?.startsWith(sink),
  );
}

/** None where the kind is not served, or may not be read. */
async function listed<T>(list: () => Promise<T[]>): Promise<T[]> {
  try {
    return await list();
  } catch (error) {
    if (isNotFound(error) || isForbidden(error)) return [];
    throw error;
  }
}
