import { type EnvVar, quantityValue } from "@spry/kube/browser";
import { type Runtime, runtimeOf } from "./runtimes.ts";
import { type Function } from "./types.ts";

/** Names that a Function's `spec.env` may not set: the runtime depends on them (docs/compatibility.md#environment). */
export const reservedEnvNames: readonly string[] = [
  "FUNC_RUNTIME",
  "FUNC_HANDLER",
  "FUNC_PORT",
  "MOD_NAME",
  "NODE_PATH",
  "PYTHONPATH",
];

export interface EnvironmentSettings {
  /** OTLP/HTTP address for traces; empty: no traces. */
  traceCollectorEndpoint: string;
  publisherProxyAddress: string;
  /** Of the container: what a heap is sized by. */
  memoryLimit?: string | undefined;
  heapSizing?: HeapSizing | undefined;
  /** On a developer's machine: without what programs take for a server that is in production. */
  isDevelopment?: boolean;
}

/** Which generations of a heap are sized by the container's memory; the newest way is the first. */
export const heapSizings = ["both", "old", "none"] as const;
export type HeapSizing = (typeof heapSizings)[number];

/**
 * What a heap's old generation gets of the container's memory; the rest is for young objects, buffers and
 * Node.js itself. By itself Node.js 24 takes 256 MiB for granted in any smaller container, where the kernel
 * kills it before it thinks of collecting.
 */
const heapShare = 0.6;

/**
 * The young generation is two halves of this share each, in steps of two. By itself Node.js 24 lets it grow to
 * 128 MiB in any container, and what it has grown to stays with the process.
 */
const youngHalf = { share: 1 / 32, minMegabytes: 1, maxMegabytes: 16 };

/** What the newer runtimes are given unless the user names another handler. */
const defaultHandler: readonly (readonly [name: string, value: string])[] = [
  ["HANDLER_FUNC_NAME", "main"],
  ["HANDLER_MOD_NAME", "handler"],
];

/**
 * The container's environment: the user's variables, then ours. Ours win where both name one, except for the handler's names and `productionEnv`. Each
 * name comes once, because a Deployment's env is a map by name to server-side apply; of several the
 * last counts, as in a Pod.
 */
export function environmentOf(fn: Function, settings: EnvironmentSettings): EnvVar[] {
  const injected = injectedEnv(fn, settings);
  const lastOf = new Map([...(fn.spec.env ?? []), ...injected].map((env) => [env.name, env]));
  return [...(fn.spec.env ?? []), ...injected].filter((env) => lastOf.get(env.name) === env);
}

function injectedEnv(fn: Function, settings: EnvironmentSettings): EnvVar[] {
  const runtime = runtimeOf(fn);
  const values: [name: string, value: string][] = [
    ["FUNC_RUNTIME", runtime.name],
    ["FUNC_NAME", fn.metadata.name ?? ""],
    ["SERVICE_NAMESPACE", fn.metadata.namespace ?? ""],
    ["TRACE_COLLECTOR_ENDPOINT", settings.traceCollectorEndpoint],
    ["PUBLISHER_PROXY_ADDRESS", settings.publisherProxyAddress],
    ["FUNC_HANDLER", "main"],
    ["MOD_NAME", "handler"],
    ["FUNC_PORT", "8080"],
    ...timeoutEnv(fn),
    ...handlerEnv(fn, runtime),
    ...(settings.isDevelopment ? [] : productionEnv(fn, runtime)),
    ...languageEnv(runtime),
  ];
  return [...values.map(([name, value]) => ({ name, value })), ...heapEnv(fn, runtime, settings)];
}

function timeoutEnv({ spec }: Function): [name: string, value: string][] {
  return spec.timeoutSeconds === undefined ? [] : [["FUNC_TIMEOUT", String(spec.timeoutSeconds)]];
}

/** The user's own options come last, and win. */
function heapEnv(fn: Function, { language }: Runtime, settings: EnvironmentSettings): EnvVar[] {
  const { memoryLimit, heapSizing = "both" } = settings;
  if (language !== "nodejs" || memoryLimit === undefined || heapSizing === "none") return [];
  const limit = quantityValue(memoryLimit) / 2 ** 20;
  const old = Math.floor(limit * heapShare);
  const own = fn.spec.env?.findLast(({ name }) => name === "NODE_OPTIONS");
  if (own?.valueFrom || old < 1) return [];
  const options = [`--max-old-space-size=${old}`];
  if (heapSizing === "both") options.push(`--max-semi-space-size=${youngHalfMegabytes(limit)}`);
  if (own?.value) options.push(own.value);
  return [{ name: "NODE_OPTIONS", value: options.join(" ") }];
}

function youngHalfMegabytes(limit: number): number {
  const { share, minMegabytes, maxMegabytes } = youngHalf;
  const power = 2 ** Math.floor(Math.log2(limit * share));
  return Math.min(Math.max(power, minMegabytes), maxMegabytes);
}

function handlerEnv({ spec }: Function, { requestHandler }: Runtime): [string, string][] {
  if (!requestHandler) return [];
  const isGiven = (name: string) => spec.env?.some((each) => each.name === name) ?? false;
  return defaultHandler.filter(([name]) => !isGiven(name)).map(([name, value]) => [name, value]);
}

/**
 * What other platforms set, unless the user does: the port for programs that listen, and for Node.js' frameworks that errors are
 * not shown to callers with their stacks.
 */
function productionEnv({ spec }: Function, { language }: Runtime): [string, string][] {
  const values: [string, string][] = [
    ["PORT", "8080"],
    ...(language === "nodejs" ? ([["NODE_ENV", "production"]] as [string, string][]) : []),
  ];
  return values.filter(([name]) => !spec.env?.some((each) => each.name === name));
}

function languageEnv(runtime: Runtime): [name: string, value: string][] {
  if (runtime.language === "nodejs") return [];
  const version = runtime.interpreter.replace("@", "");
  const home = "$(KUBELESS_INSTALL_VOLUME)";
  return [
    ["PYTHONPATH", `${home}/lib.${version}/site-packages:${home}`],
    ["PYTHONUNBUFFERED", "TRUE"],
  ];
}
