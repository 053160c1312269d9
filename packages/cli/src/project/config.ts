/** Reads `spry.yaml`. */
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { loadAll, YAMLException } from "js-yaml";
import { type FunctionSchedule } from "@spry/function";
import { ofKyma } from "../import/import-file.ts";
import { checkKymaConfig, isKymaConfig, kymaConfigName } from "../kyma/config-yaml.ts";
import { UserError } from "../user-error.ts";
import { checkValue } from "./check-value.ts";
import { configName, configSchema } from "./schema.ts";

/** A variable's value, or where it comes from. */
export type EnvValue =
  | string
  | number
  | boolean
  | { secret: string; key: string; optional?: boolean }
  | { configMap: string; key: string; optional?: boolean };

/** The content of `spry.yaml`; `configSchema` describes each key. */
export interface ProjectConfig {
  name?: string;
  namespace?: string;
  runtime?: string;
  env?: Record<string, EnvValue>;
  scale?: { min?: number; max?: number };
  profile?: string;
  mounts?: { secret: string; path: string }[];
  schedules?: FunctionSchedule[];
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

const maxBytes = 1024 * 1024;

/** The configuration of a directory, empty without a `spry.yaml`. Throws a UserError that names file and line. */
export function readConfig(directory: string): ProjectConfig {
  const file = path.join(directory, configName);
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) return kymaConfigOf(directory);
  if (found.size > maxBytes) throw new UserError(`${configName} is larger than 1 MiB`);
  return parseConfig(readFileSync(file, "utf8"));
}

/** A directory of the original's CLI works without a second file. */
function kymaConfigOf(directory: string): ProjectConfig {
  const file = path.join(directory, kymaConfigName);
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size > maxBytes) return {};
  let value: unknown;
  try {
    [value] = loadAll(readFileSync(file, "utf8"));
  } catch {
    // The file may belong to another program.
    return {};
  }
  if (!isKymaConfig(value)) return {};
  checkKymaConfig(value, kymaConfigName);
  return ofKyma(value, directory).config;
}

/** Exported for its test. */
export function parseConfig(text: string): ProjectConfig {
  let value: unknown;
  try {
    // An empty document is an empty configuration.
    [value] = loadAll(text);
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const line = error.mark ? `:${error.mark.line + 1}:${error.mark.column + 1}` : "";
    throw new UserError(`${configName}${line}: not valid YAML: ${error.reason}`);
  }
  if (value === undefined || value === null) return {};
  const problem = checkValue(configSchema, value);
  if (!problem) return value;
  const line = lineOf(text, problem.path);
  throw new UserError(
    `${configName}${line ? `:${line}` : ""}: ${[problem.path.join("."), problem.message].filter(Boolean).join(" ")}`,
    problem.wayOut,
  );
}

/** Where a key is, in block style; undefined where it cannot be found. Counted from 1. */
function lineOf(text: string, keys: readonly (string | number)[]): number | undefined {
  const lines = text.split("\n");
  let at = 0;
  let found: number | undefined;
  for (const key of keys) {
    const index = lines.findIndex((line, i) => i >= at && startsWithKey(line, String(key)));
    if (index < 0) break;
    found = index + 1;
    at = found;
  }
  return found;
}

const startsWithKey = (line: string, key: string): boolean =>
  [key, `"${key}"`, `'${key}'`].some((each) =>
    line.trim().replace(/^- /, "").startsWith(`${each}:`),
  );
