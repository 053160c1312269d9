import { historyLimits, presets, type ScaleConfig } from "@spry/function";
import { allowedAddressProblem } from "@spry/source";
import { type ControllerConfig, settingsOf } from "../config.ts";
import { readExecutorArguments } from "./executor-arguments.ts";
import { natsProblem } from "./nats-servers.ts";
import { type ServerlessSpec, type ServerlessStatus } from "./types.ts";

const logLevels = ["fatal", "panic", "dpanic", "error", "warn", "info", "debug"] as const;
const logFormats = ["json", "console"] as const;
export type LogLevel = (typeof logLevels)[number];
export type LogFormat = (typeof logFormats)[number];

/** What a spec comes to. */
export interface Configuration {
  config: ControllerConfig;
  /** Undefined where nothing is said: as the process was started. */
  logLevel: LogLevel | undefined;
  logFormat: LogFormat | undefined;
  /** How long a liveness check may wait. */
  livenessTimeoutMs: number;
  /** Remarks about settings that are accepted and have no effect. */
  remarks: string[];
  /** What the status says is in effect. */
  effective: Omit<ServerlessStatus, "conditions" | "state" | "served" | "dockerRegistry">;
}

/** Values that cannot be used, one sentence each, are `errors`; then nothing changes. */
export type ConfigurationResult = { configuration: Configuration } | { errors: string[] };

/**
 * The controller's configuration by a Serverless object's spec, on top of what the installation says. An empty
 * text counts as not set. `functionRequeueDuration` is how often Git references are checked: nothing else
 * of a Function is looked at by the clock.
 */
export function configurationOf(base: ControllerConfig, spec: ServerlessSpec): ConfigurationResult {
  const errors: string[] = [];
  const read = <T>(
    field: keyof ServerlessSpec,
    parse: (text: string) => T | undefined,
    what: string,
  ) => {
    const text = spec[field];
    if (typeof text !== "string" || text === "") return undefined;
    const value = parse(text);
    if (value === undefined) errors.push(`spec.${field}: ${JSON.stringify(text)} is not ${what}`);
    return value;
  };
  const among =
    <T extends string>(names: readonly T[]) =>
    (text: string) =>
      names.find((name) => name === text);
  const whole = (least: number, most: number) => (text: string) => {
    const value = Number(text);
    return /^\d{1,6}$/.test(text) && value >= least && value <= most ? value : undefined;
  };
  const functionPresets = Object.keys(presets.function) as (keyof typeof presets.function)[];
  const buildPresets = Object.keys(presets.build) as (keyof typeof presets.build)[];
  const listed = (names: readonly string[]) => `one of ${names.join(", ")}`;
  const cpu = read("targetCPUUtilizationPercentage", whole(1, 100), "a whole number from 1 to 100");
  const builds = read(
    "functionBuildMaxSimultaneousJobs",
    whole(1, 1000),
    "a whole number from 1 to 1000",
  );
  const { least, most } = historyLimits;
  const history = read(
    "functionHistoryLimit",
    whole(least, most),
    `a whole number from ${least} to ${most}`,
  );
  const requeueMs = read(
    "functionRequeueDuration",
    durationMs,
    "a duration such as 5m, of a second or more",
  );
  const livenessMs = read(
    "healthzLivenessTimeout",
    durationMs,
    "a duration such as 10s, of a second or more",
  );
  const pod = read("defaultRuntimePodPreset", among(functionPresets), listed(functionPresets));
  const build = read("defaultBuildJobPreset", among(buildPresets), listed(buildPresets));
  const level = read("logLevel", among(logLevels), listed(logLevels));
  const format = read("logFormat", among(logFormats), listed(logFormats));
  const builder = readExecutorArguments(spec.functionBuildExecutorArgs ?? "");
  if ("error" in builder) errors.push(`spec.functionBuildExecutorArgs: ${builder.error}`);
  const tracing = spec.tracing?.endpoint ?? "";
  const eventing = spec.eventing?.endpoint ?? "";
  for (const [field, url] of [
    ["tracing", tracing],
    ["eventing", eventing],
  ] as const) {
    if (url && !isHttpUrl(url)) errors.push(`spec.${field}.endpoint: not an http(s) URL`);
  }
  const natsMistake = natsProblem(spec.eventing?.nats);
  if (natsMistake) errors.push(`spec.eventing.nats.${natsMistake}`);
  const gitAllowedAddresses = spec.gitAllowedAddresses ?? [];
  for (const [i, entry] of gitAllowedAddresses.entries()) {
    const problem = allowedAddressProblem(entry);
    if (problem) errors.push(`spec.gitAllowedAddresses[${i}]: ${JSON.stringify(entry)} ${problem}`);
  }
  const { defaultScaleConfig } = spec;
  const scaleProblem = defaultScaleConfig && scaleConfigProblem(defaultScaleConfig);
  if (scaleProblem) errors.push(`spec.defaultScaleConfig: ${scaleProblem}`);
  if (errors.length > 0 || "error" in builder) return { errors };
  const { plainRegistries, withoutEffect } = builder;
  const config: ControllerConfig = {
    ...base,
    ...(cpu === undefined ? {} : { targetCpuUtilization: cpu }),
    ...(builds === undefined ? {} : { maxSimultaneousBuilds: builds }),
    ...(history === undefined ? {} : { historyLimit: history }),
    ...(defaultScaleConfig === undefined ? {} : { defaultScaleConfig }),
    ...(requeueMs === undefined ? {} : { gitCheckIntervalSeconds: requeueMs / 1000 }),
    ...(gitAllowedAddresses.length === 0 ? {} : { gitAllowedAddresses }),
    ...(pod === undefined ? {} : { defaultFunctionPreset: pod }),
    ...(build === undefined ? {} : { defaultBuildPreset: build }),
    ...(tracing ? { traceCollectorEndpoint: tracing } : {}),
    ...(eventing ? { publisherProxyAddress: eventing } : {}),
    ...(plainRegistries.length > 0
      ? { plainRegistries: [...(base.plainRegistries ?? []), ...plainRegistries] }
      : {}),
  };
  const settings = settingsOf(config);
  const livenessTimeoutMs = livenessMs ?? 10_000;
  return {
    configuration: {
      config,
      logLevel: level,
      logFormat: format,
      livenessTimeoutMs,
      remarks: remarksOn(spec, withoutEffect),
      effective: {
        tracingEndpoint: settings.traceCollectorEndpoint,
        eventingEndpoint: settings.publisherProxyAddress,
        targetCPUUtilizationPercentage: String(settings.targetCpuUtilization),
        functionRequeueDuration:
          spec.functionRequeueDuration || `${settings.gitCheckIntervalSeconds}s`,
        functionBuildExecutorArgs: spec.functionBuildExecutorArgs ?? "",
        functionBuildMaxSimultaneousJobs: String(settings.maxSimultaneousBuilds),
        functionHistoryLimit: String(settings.historyLimit),
        healthzLivenessTimeout: spec.healthzLivenessTimeout || "10s",
        defaultBuildJobPreset: settings.defaultBuildPreset,
        defaultRuntimePodPreset: settings.defaultFunctionPreset,
        logLevel: level ?? "info",
        logFormat: format ?? "json",
        networkPoliciesEnabled: "True",
        ...(settings.defaultScaleConfig ? { defaultScaleConfig: settings.defaultScaleConfig } : {}),
      },
    },
  };
}

function scaleConfigProblem({ minReplicas, maxReplicas }: ScaleConfig): string | undefined {
  if (!Number.isInteger(minReplicas) || minReplicas < 0)
    return `minReplicas must be a whole number, at least 0`;
  if (!Number.isInteger(maxReplicas) || maxReplicas < 1)
    return `maxReplicas must be a whole number, at least 1`;
  if (minReplicas > maxReplicas) return "minReplicas must not be greater than maxReplicas";
  return undefined;
}

function remarksOn({ enableNetworkPolicies }: ServerlessSpec, withoutEffect: string[]): string[] {
  return [
    ...(withoutEffect.length > 0
      ? [`functionBuildExecutorArgs: ${withoutEffect.join(" ")} have no effect`]
      : []),
    ...(enableNetworkPolicies === false
      ? ["enableNetworkPolicies is deprecated: the NetworkPolicies always exist"]
      : []),
  ];
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Go's notation (`time.ParseDuration`): `1h30m`, `90s`. Undefined when it is none, or less than a second. */
export function durationMs(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit = ""] of text.matchAll(/([\d.]+)(ms|s|m|h)/g)) {
    total += Number(amount) * (units[unit] ?? 0);
  }
  return total >= 1000 ? total : undefined;
}

function isHttpUrl(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol);
  } catch {
    return false;
  }
}
