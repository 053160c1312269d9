/**
 * Configuration of other tools as `spry.yaml`: func's `func.yaml`, OpenFaaS' `stack.yml`, the original's `config.yaml`, and for AWS Lambda
 * `serverless.yml` and templates of SAM.
 */
import { statSync } from "node:fs";
import path from "node:path";
import { load, YAMLException } from "js-yaml";
import { isKymaConfig, kymaTexts } from "../kyma/config-yaml.ts";
import { type EnvValue } from "../project/config.ts";
import { readText } from "../text-file.ts";
import { UserError } from "../user-error.ts";
import { withWrittenTexts } from "../written-texts.ts";
import { type Document, isRecord, loadAwsYaml } from "./aws-yaml.ts";
import { clean, resourcesRemark, runtimeLike } from "./counterparts.ts";
import { type Imported } from "./imported.ts";
import { ofKyma } from "./kyma-import.ts";
import { isTemplate, ofTemplate } from "./sam.ts";
import { isServerless, ofServerless } from "./serverless.ts";

/**
 * Several Functions of a file as one configuration, in its directory; undefined where they cannot be, because they are in different
 * namespaces. `file`: what they are from.
 */
export function asOne(file: string, all: readonly Imported[]): Imported | undefined {
  const root = path.dirname(path.resolve(file));
  const [first] = all;
  const namespace = first?.config.namespace;
  if (all.some(({ config }) => config.namespace !== namespace)) return undefined;
  const runtime = first?.config.runtime;
  const isShared = all.every(({ config }) => config.runtime === runtime);
  const functions = all.map(({ directory, config }) => {
    const { name = "", namespace: _all, runtime: own, ...rest } = config;
    const at = path.relative(root, directory).split(path.sep).join("/") || ".";
    // What reads the file expects it there.
    const isExpected = at === name;
    return [
      name,
      {
        ...(!isExpected && { directory: at }),
        ...(!isShared && own !== undefined && { runtime: own }),
        ...rest,
      },
    ] as const;
  });
  return {
    directory: root,
    config: {
      ...(namespace !== undefined && { namespace }),
      ...(isShared && runtime !== undefined && { runtime }),
      functions: Object.fromEntries(functions),
    },
    remarks: all.flatMap(({ config, remarks }) =>
      remarks.map((remark) => `${config.name}: ${remark}`),
    ),
  };
}

/** Throws a UserError for a file that is none of them. */
export function importFile(file: string): Imported[] {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile())
    throw new UserError(
      `the file ${file} does not exist`,
      "name a func.yaml, a stack.yml, a config.yaml, a serverless.yml or a template of AWS SAM",
    );
  const directory = path.dirname(path.resolve(file));
  const ofAws = parsed(file, loadAwsYaml);
  if (isServerless(ofAws)) return ofServerless(ofAws, file, directory);
  if (isTemplate(ofAws)) return ofTemplate(ofAws, file, directory);
  const document = parsed(file, (text) => withWrittenTexts([load(text)], text, texts)[0]);
  if (isKymaConfig(document)) return [ofKyma(document, directory)];
  if (isRecord(document["functions"])) return ofOpenFaas(document, directory);
  if (document["specVersion"] !== undefined || document["runtime"] !== undefined)
    return [ofFunc(document, directory)];
  throw new UserError(
    `${file} is neither a func.yaml nor a stack.yml nor a config.yaml, nor a serverless.yml or a template of AWS SAM with functions`,
    "name one of these files",
  );
}

/** What is text in those files, however it is written. */
const texts = [
  ...kymaTexts,
  ["run", "envs", "*", "value"],
  ["deploy", "labels", "*", "value"],
  ["deploy", "annotations", "*"],
  ["functions", "*", "environment", "*"],
  ["functions", "*", "labels", "*"],
  ["functions", "*", "annotations", "*"],
];

function parsed(file: string, read: (text: string) => unknown): Document {
  try {
    const document = read(readText(file));
    if (isRecord(document)) return document;
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const line = error.mark ? `:${error.mark.line + 1}` : "";
    throw new UserError(`${file}${line}: not valid YAML: ${error.reason}`);
  }
  throw new UserError(`${file} has no keys`);
}

interface Variable {
  name?: string;
  value?: string;
  valueFrom?: {
    secretKeyRef?: { name?: string; key: string };
    configMapKeyRef?: { name?: string; key: string };
  };
}

/** `{{ secret:NAME:KEY }}` and `{{ configMap:NAME:KEY }}` are func's way to name a key. */
function funcValue(text: string): EnvValue {
  const [, kind, name, key] = /^\{\{\s*(secret|configMap):([^:\s]+):(\S+)\s*\}\}$/.exec(text) ?? [];
  if (name === undefined || key === undefined) return text;
  return kind === "secret" ? { secret: name, key } : { configMap: name, key };
}

function ofFunc(document: Document, directory: string): Imported {
  const { name, namespace, runtime, run, deploy, build } = document as {
    name?: string;
    namespace?: string;
    runtime?: string;
    run?: { envs?: Variable[]; volumes?: { secret?: string; path?: string }[] };
    deploy?: {
      namespace?: string;
      annotations?: Record<string, string>;
      labels?: { key: string; value?: string }[];
      options?: { scale?: { min?: number; max?: number }; resources?: object };
      healthEndpoints?: object;
    };
    build?: { buildpacks?: unknown[]; buildEnvs?: unknown[] };
  };
  const remarks: string[] = [];
  const env: Record<string, EnvValue> = {};
  for (const variable of run?.envs ?? []) {
    if (variable.name && variable.value !== undefined) {
      env[variable.name] = funcValue(variable.value);
      const [, local] = /^\{\{\s*env:(\w+)\s*\}\}$/.exec(variable.value) ?? [];
      if (local !== undefined) {
        env[variable.name] = "";
        remarks.push(
          `the variable ${variable.name} has this machine's ${local} at each deployment: write its value, or a Secret`,
        );
      }
    } else remarks.push(`variables that are taken from all of a Secret must be named one by one`);
  }
  if (build?.buildpacks?.length) remarks.push("buildpacks are not used: Spry builds images itself");
  if (build?.buildEnvs?.length) remarks.push("variables of the build are not used");
  if (deploy?.options?.resources) remarks.push(resourcesRemark);
  if (deploy?.healthEndpoints)
    remarks.push("health endpoints are not asked: the runtime has its own");
  const scale = deploy?.options?.scale;
  const mounts = (run?.volumes ?? []).flatMap(({ secret, path: at }) =>
    secret && at ? [{ secret, path: at }] : [],
  );
  const labels = Object.fromEntries(
    (deploy?.labels ?? []).map(({ key, value = "" }) => [key, value]),
  );
  const where = namespace ?? deploy?.namespace;
  return {
    directory,
    remarks,
    config: clean({
      ...(name && { name }),
      ...(where && { namespace: where }),
      runtime: runtimeLike(runtime ?? "node", remarks),
      env,
      ...(scale && { scale }),
      mounts,
      labels,
      annotations: deploy?.annotations ?? {},
    }),
  };
}

function ofOpenFaas(document: Document, directory: string): Imported[] {
  interface Entry {
    lang?: string;
    handler?: string;
    namespace?: string;
    environment?: Record<string, string>;
    secrets?: string[];
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    limits?: object;
    requests?: object;
  }
  return Object.entries(document["functions"] as Record<string, Entry>).map(([name, entry]) => {
    const remarks: string[] = [];
    const {
      "com.openfaas.scale.min": min,
      "com.openfaas.scale.max": max,
      ...labels
    } = entry.labels ?? {};
    if (entry.limits ?? entry.requests) remarks.push(resourcesRemark);
    const { topic, schedule, ...annotations } = entry.annotations ?? {};
    const isCron = topic === "cron-function" && schedule !== undefined;
    if (topic !== undefined && !isCron)
      remarks.push(`the topic ${topic} has no counterpart: subscribe with a Subscription`);
    const scale = { ...(min && { min: Number(min) }), ...(max && { max: Number(max) }) };
    return {
      directory: path.resolve(directory, entry.handler ?? "."),
      remarks,
      config: clean({
        name,
        ...(entry.namespace && { namespace: entry.namespace }),
        runtime: runtimeLike(entry.lang ?? "", remarks),
        env: entry.environment ?? {},
        ...(Object.keys(scale).length > 0 && { scale }),
        mounts: (entry.secrets ?? []).map((secret) => ({
          secret,
          path: `/var/openfaas/secrets/${secret}`,
        })),
        labels,
        ...(isCron && { schedules: [{ name: "cron", cron: schedule }] }),
        annotations,
      }),
    };
  });
}
