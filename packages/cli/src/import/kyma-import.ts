/** The original's `config.yaml` as `spry.yaml`. */
import path from "node:path";
import { type KymaConfig, textsOf, variablesOf } from "../kyma/config-yaml.ts";
import { type EnvValue } from "../project/config.ts";
import { clean } from "./counterparts.ts";
import { type Imported } from "./imported.ts";

/** As the directory's configuration, so that `dev` and `deploy` work in a directory of the original's CLI. */
export function ofKyma(config: KymaConfig, directory: string): Imported {
  const remarks: string[] = [];
  const env: Record<string, EnvValue> = {};
  for (const { name, value, valueFrom } of variablesOf(config)) {
    const { secretKeyRef: secret, configMapKeyRef: map } = valueFrom ?? {};
    if (secret?.name) env[name] = { secret: secret.name, key: secret.key };
    else if (map?.name) env[name] = { configMap: map.name, key: map.key };
    else env[name] = value ?? "";
  }
  if (config.resource ?? config.resources)
    remarks.push(
      "resource is not used for a directory: choose a profile in spry.yaml, or `spry apply -f config.yaml`",
    );
  if (config.subscriptions || config.apiRules)
    remarks.push(
      "subscriptions and apiRules are objects of their own: `spry apply -f config.yaml`",
    );
  return {
    directory: path.resolve(directory, config.source.sourcePath ?? "."),
    remarks,
    config: clean({
      name: config.name,
      ...(config.namespace && { namespace: config.namespace }),
      runtime: config.runtime,
      env,
      labels: textsOf(config.runtimeLabels),
      annotations: textsOf(config.runtimeAnnotations),
    }),
  };
}
