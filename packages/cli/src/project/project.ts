/** A directory as a Function: its name, its runtime, and where its handler is. */
import { existsSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import {
  defaultRuntime,
  type Function,
  type FunctionSpec,
  functions,
  retiredRuntimes,
  type Runtime,
  runtimes,
} from "@spry/function";
import { apiVersionOf, type EnvVar } from "@spry/kube";
import { UserError } from "../user-error.ts";
import { type EnvValue, type FoundConfig, type ProjectConfig, readConfig } from "./config.ts";
import { nameFrom, nameProblem, originalName } from "./directory-name.ts";
import { namedHandler } from "./named-handler.ts";
import { readPackageJson } from "./package-json.ts";
import { looksLikePython, pythonFileOf } from "./python-files.ts";
import { configName } from "./schema.ts";
import { shownPath } from "./shown-path.ts";
import { startedBy } from "./started-file.ts";
import { fittingRuntime } from "./wanted-version.ts";

/** A directory that has been looked at. */
export interface Project {
  /** Real path of the directory. */
  root: string;
  name: string;
  /** Its settings do not say the name: of which directory's it was made, and why that one is not to be deployed. */
  guessed?: { from: string; problem: UserError | undefined };
  runtime: Runtime;
  /** File with the handler, relative to the directory. */
  handler: string;
  config: ProjectConfig;
  /** What its configuration asks for and is not done. */
  remarks: readonly string[];
}

const extensions = ["js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx"];
const nodeFiles = ["handler", "index", "app"].flatMap((name) =>
  extensions.map((extension) => `${name}.${extension}`),
);

/**
 * Reads a directory's configuration and finds its handler, as its runtime will (docs/runtime-contract.md 1.1, 1.2).
 * Throws a UserError for a directory that is not a Function. `read`: its configuration, if that is elsewhere.
 */
export function openProject(
  directory: string,
  read: (root: string) => FoundConfig = readConfig,
): Project {
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
    throw new UserError(
      `${directory} is not a directory`,
      "name the directory with the Function's files; `spry init DIR` creates one",
    );
  const given = realpathSync(directory);
  const {
    config,
    directory: code,
    remarks = [],
    at = (key) => `${configName}: ${key}`,
  } = read(given);
  if (!statSync(code, { throwIfNoEntry: false })?.isDirectory())
    throw new UserError(
      `${shownPath(code)} is not a directory`,
      "check source.sourcePath of config.yaml",
    );
  const root = realpathSync(code);
  const guessed =
    config.runtime === undefined ? guessRuntime(root, config.handler) : { name: config.runtime };
  const runtime = runtimeNamed(guessed.name);
  const { handler, module, called, remark } = handlerOf(root, runtime, config, at);
  const more = [guessed.remark, remark].filter((each) => each !== undefined);
  return {
    root,
    config: withVariables(config, {
      HANDLER_MOD_NAME: module,
      HANDLER_FUNC_NAME: called,
      HANDLER_DIALECT: config.dialect,
    }),
    remarks: [...remarks, ...more],
    runtime,
    name: config.name ?? nameFrom(root),
    ...(config.name === undefined && {
      guessed: { from: originalName(root), problem: nameProblem(root) },
    }),
    handler,
  };
}

/** The configuration with variables of the runtime; the user's own values win. */
function withVariables(
  config: ProjectConfig,
  variables: Record<string, string | undefined>,
): ProjectConfig {
  const set = Object.entries(variables).filter(([, value]) => value !== undefined);
  if (set.length === 0) return config;
  return {
    ...config,
    env: { ...(Object.fromEntries(set) as Record<string, string>), ...config.env },
  };
}

/** The file; `module`: its name, where the runtime does not look there by itself; `called`: the function that is named with it. */
function handlerOf(
  root: string,
  runtime: Runtime,
  { handler: given, dialect, env }: ProjectConfig,
  at: (key: string) => string,
): { handler: string; module?: string; called?: string; remark?: string } {
  if (given !== undefined) {
    const own = runtime.language === "python" ? ["py"] : extensions;
    const { file, ...named } = namedHandler(root, given, {
      runtime,
      extensions: own,
      isBuilt: runtime.language === "nodejs" && hasBuildScript(root),
      hasFunction: dialect !== undefined,
      at: at("handler"),
    });
    return { handler: file, ...named };
  }
  const handler = handlerIn(root, runtime, env?.["HANDLER_MOD_NAME"]);
  const isOwn = nodeFiles.includes(handler) || mainOf(root, "any").includes(handler);
  // The runtime looks there by itself; compiled code has another name.
  if (isOwn || handler === "server.js" || startedBy(root) !== handler) return { handler };
  return { handler, module: handler.replace(/\.\w+$/, "") };
}

/** A runtime by its name. Throws a UserError that names the ones to choose from. */
export function runtimeNamed(name: string): Runtime {
  const found = runtimes.find((each) => each.name === name);
  if (found) return found;
  const successor = Object.hasOwn(retiredRuntimes, name) ? retiredRuntimes[name] : undefined;
  throw new UserError(
    `unknown runtime ${name}`,
    successor ? `use ${successor}` : `use one of ${runtimes.map((each) => each.name).join(", ")}`,
  );
}

function guessRuntime(root: string, handler = ""): { name: string; remark?: string } {
  const has = (name: string) => existsSync(path.join(root, name));
  const isNode = () =>
    [...nodeFiles, ...mainOf(root), startedBy(root) ?? ""].some((name) => name !== "" && has(name));
  const isPython =
    handler === ""
      ? !isNode() && looksLikePython(root, has("package.json"))
      : pythonHandler(root, handler);
  return fittingRuntime(root, isPython ? "python312" : defaultRuntime, readPackageJson(root));
}

/** A file of Python's, or one with the function that it names. */
function pythonHandler(root: string, handler: string): boolean {
  return handler.endsWith(".py") || existsSync(path.join(root, handler.replace(/\.\w+$/, ".py")));
}

function handlerIn(root: string, { language, name }: Runtime, module: unknown): string {
  const isPython = language === "python";
  const named = [...(isPython ? ["py"] : extensions)]
    .map((extension) => `${String(module)}.${extension}`)
    .find((file) => existsSync(path.join(root, file)));
  if (named !== undefined) return named;
  const candidates = [
    ...nodeFiles.slice(0, extensions.length),
    ...mainOf(root),
    ...nodeFiles,
    "build/index.js",
  ];
  const found = isPython
    ? pythonFileOf(root)
    : candidates.find((file) => existsSync(path.join(root, file)));
  if (found) return found;
  // The output of a build script does not exist yet.
  const built = isPython ? undefined : [...mainOf(root, "any")][0];
  if (built !== undefined && hasBuildScript(root)) return built;
  const started = isPython ? undefined : startedBy(root);
  if (started !== undefined && (hasBuildScript(root) || existsSync(path.join(root, started))))
    return started;
  const names = isPython ? "handler.py, main.py or app.py" : "handler.ts, handler.js or index.js";
  throw new UserError(
    `${root === process.cwd() ? "this directory" : shownPath(root)} has no handler for the runtime ${name}: ${names} does not exist`,
    `create one, or set runtime in ${configName}; \`spry init DIR\` writes an example`,
  );
}

/** The file that `main` of package.json names. */
export function mainOf(root: string, which: "existing" | "any" = "existing"): string[] {
  const { main } = readPackageJson(root);
  if (typeof main !== "string") return [];
  const file = path.posix.normalize(main);
  return which === "any" || existsSync(path.join(root, file)) ? [file] : [];
}

/** Whether the image's build runs a script of package.json first. */
export function hasBuildScript(root: string): boolean {
  const { scripts } = readPackageJson(root);
  const build = (scripts as Record<string, unknown> | undefined)?.["build"];
  return typeof build === "string" && build.trim() !== "";
}

/** The Function that a directory is, with the source that it is given. */
export function functionOf(
  { name, runtime, config }: Project,
  namespace: string,
  source: FunctionSpec["source"],
): Function {
  const { env = {}, scale, profile, mounts, schedules, labels, annotations } = config;
  const variables = Object.entries(env).map(([key, value]) => envVar(key, value));
  const { min = 1, max = Math.max(min, 1) } = scale ?? {};
  return {
    apiVersion: apiVersionOf(functions),
    kind: functions.kind,
    metadata: { name, namespace },
    spec: {
      runtime: runtime.name,
      source,
      ...(variables.length > 0 && { env: variables }),
      ...(scale && { scaleConfig: { minReplicas: min, maxReplicas: max } }),
      ...(profile && { resourceConfiguration: { function: { profile } } }),
      ...(mounts && {
        secretMounts: mounts.map(({ secret, path: mountPath }) => ({
          secretName: secret,
          mountPath,
        })),
      }),
      ...(schedules && { schedules }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
    },
  };
}

function envVar(name: string, value: EnvValue): EnvVar {
  if (typeof value !== "object") return { name, value };
  const { key, optional } = value;
  const more = optional === undefined ? {} : { optional };
  if ("secret" in value)
    return { name, valueFrom: { secretKeyRef: { name: value.secret, key, ...more } } };
  return { name, valueFrom: { configMapKeyRef: { name: value.configMap, key, ...more } } };
}
