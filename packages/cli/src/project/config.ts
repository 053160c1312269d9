/** Reads `spry.yaml`. */
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { loadAll, YAMLException } from "js-yaml";
import {
  cronProblem,
  type FunctionSchedule,
  reservedEnvNames,
  timeZoneProblem,
} from "@spry/function";
import { ofKyma } from "../import/kyma-import.ts";
import { isInside } from "../inside.ts";
import {
  checkKymaConfig,
  isKymaConfig,
  kymaConfigName,
  kymaFilesOf,
  kymaTexts,
} from "../kyma/config-yaml.ts";
import { readText, withoutByteOrderMark } from "../text-file.ts";
import { UserError } from "../user-error.ts";
import { withWrittenTexts } from "../written-texts.ts";
import { checkValue, type ValueProblem } from "./check-value.ts";
import { lineOf } from "./line-of.ts";
import { shownPath } from "./shown-path.ts";
import { configName, configSchema } from "./schema.ts";

/** A variable's value, or where it comes from. */
export type EnvValue =
  | string
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
  handler?: string;
  dialect?: "lambda";
  /** Several Functions instead of one (`stack.ts`). */
  functions?: Record<string, MemberConfig | null>;
}

/** One of several Functions. */
export interface MemberConfig extends Omit<ProjectConfig, "name" | "namespace" | "functions"> {
  directory?: string;
}

const variables = [
  ["env", "*"],
  ["functions", "*", "env", "*"],
];

/** Of a configuration. */
export const maxBytes = 1024 * 1024;

/** A configuration, and which files it is about. */
export interface FoundConfig {
  config: ProjectConfig;
  /** The directory with the code: the same, if a `config.yaml` does not name another. */
  directory: string;
  /** What it asks for and a directory's configuration cannot say, a sentence each. */
  remarks?: string[];
  /** Where a key is, for messages: `spry.yaml:3: handler`. */
  at?: (key: string) => string;
}

/** A `spry.yaml`, checked. */
export interface ConfigFile {
  config: ProjectConfig;
  /** Where a key is, for messages: `spry.yaml:3: functions.orders.handler`. */
  at: (keys: readonly string[]) => string;
}

/** The `spry.yaml` of a directory; undefined where it has none. Throws a UserError that names file, as `shown`, and line. */
export function readConfigFile(directory: string, shown = configName): ConfigFile | undefined {
  const file = path.join(directory, configName);
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) return undefined;
  const text = readText(file, shown);
  return {
    config: parseConfig(text, shown),
    at: (keys) => `${placeIn(shown, text, keys)}: ${keys.join(".")}`,
  };
}

/** The configuration of a directory, empty without a `spry.yaml`. Throws a UserError that names file and line. */
export function readConfig(directory: string): FoundConfig {
  const file = readConfigFile(directory);
  if (!file)
    return readKymaConfig(path.join(directory, kymaConfigName)) ?? { directory, config: {} };
  if (file.config.functions)
    throw new UserError(
      `${shownPath(path.join(directory, configName))} has several Functions`,
      `\`spry dev\` and \`spry deploy\` take all of them; name a directory with one`,
    );
  return { directory, config: file.config, at: (key) => file.at([key]) };
}

/**
 * A directory of the original's CLI works without a second file. `codeIn`: another directory with the code. Undefined where the
 * file does not exist, or belongs to another program.
 */
export function readKymaConfig(file: string, codeIn?: string): FoundConfig | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size > maxBytes) return undefined;
  const text = withoutByteOrderMark(readFileSync(file, "utf8"));
  let value: unknown;
  try {
    [value] = withWrittenTexts(loadAll(text), text, kymaTexts);
  } catch {
    return undefined;
  }
  if (!isKymaConfig(value)) return undefined;
  checkKymaConfig(value, shownPath(file), text);
  const { config, directory, remarks } = ofKyma(value, path.dirname(file));
  if (!isInside(path.dirname(file), directory))
    throw new UserError(
      `${shownPath(file)}: source.sourcePath ${value.source.sourcePath} is outside of its directory`,
      "only files of that directory become a Function's source: copy it there",
    );
  const [handler, manifest] = kymaFilesOf(value.runtime);
  const { sourceHandlerName = handler, depsHandlerName = manifest } = value.source;
  if (depsHandlerName !== manifest && existsSync(path.join(directory, depsHandlerName)))
    throw new UserError(
      `${shownPath(file)}: a directory's packages are declared in ${manifest}, not in ${depsHandlerName}`,
      `rename it, or apply the file: \`spry apply -f ${shownPath(file)}\` reads that name, too`,
    );
  const module =
    sourceHandlerName === handler ? undefined : sourceHandlerName.replace(/\.\w+$/, "");
  return {
    directory: codeIn ?? directory,
    remarks,
    config: {
      ...config,
      ...(module !== undefined && { env: { ...config.env, HANDLER_MOD_NAME: module } }),
    },
  };
}

/** `file`: its name in messages. */
export function parseConfig(text: string, file = configName): ProjectConfig {
  let value: unknown;
  try {
    // An empty document is an empty configuration.
    [value] = withWrittenTexts(loadAll(text), text, variables);
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const line = error.mark ? `:${error.mark.line + 1}:${error.mark.column + 1}` : "";
    if (error.reason === "duplicated mapping key")
      throw new UserError(
        `${file}${line}: a key is there for the second time`,
        "keep one of the two; Functions have different names",
      );
    throw new UserError(`${file}${line}: not valid YAML: ${error.reason}`);
  }
  if (value === undefined || value === null) return {};
  const problem =
    checkValue(configSchema, value) ?? scheduleProblem(value) ?? reservedProblem(value);
  if (!problem) return value;
  throw new UserError(
    `${placeIn(file, text, problem.path)}: ${[problem.path.join("."), problem.message].filter(Boolean).join(" ")}`,
    problem.wayOut,
  );
}

/** The Function could not be stored with it, and that message has no line. */
function reservedProblem(config: ProjectConfig): ValueProblem | undefined {
  for (const [keys, { env = {} }] of withMembers(config)) {
    const name = Object.keys(env).find((each) => reservedEnvNames.includes(each));
    if (name !== undefined)
      return {
        path: [...keys, "env", name],
        message: "is a reserved name",
        wayOut: `choose another one; reserved are ${reservedEnvNames.join(", ")}`,
      };
  }
  return undefined;
}

/** The configuration and those of its several Functions, each with where it is. */
const withMembers = (config: ProjectConfig): [string[], ProjectConfig][] => [
  [[], config],
  ...Object.entries(config.functions ?? {}).map(([name, each]): [string[], ProjectConfig] => [
    ["functions", name],
    each ?? {},
  ]),
];

/** What a schema cannot say: that an expression or a time zone is none by which anything is ever called. */
function scheduleProblem(config: ProjectConfig): ValueProblem | undefined {
  for (const [keys, { schedules = [] }] of withMembers(config))
    for (const [index, { cron, timeZone }] of schedules.entries()) {
      const path = [...keys, "schedules", index];
      const wrongCron = cronProblem(cron);
      if (wrongCron !== undefined) return { path: [...path, "cron"], message: wrongCron };
      const wrongZone = timeZone === undefined ? undefined : timeZoneProblem(timeZone);
      if (wrongZone !== undefined) return { path: [...path, "timeZone"], message: wrongZone };
    }
  return undefined;
}

function placeIn(file: string, text: string, keys: readonly (string | number)[]): string {
  const line = lineOf(text, keys);
  return line ? `${file}:${line}` : file;
}
