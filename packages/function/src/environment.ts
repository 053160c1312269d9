import { type EnvVar } from "@spry/kube";
import { type Runtime, runtimeOf } from "./runtimes.ts";
import { type Function } from "./types.ts";

/** Names that a Function's `spec.env` may not set: the runtime rests on them. */
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
}

/**
 * The container's environment: the user's variables, then ours. Ours win where both name one. Each
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
    ...languageEnv(runtime),
  ];
  return values.map(([name, value]) => ({ name, value }));
}

function languageEnv(runtime: Runtime): [name: string, value: string][] {
  const renamed: [string, string][] = runtime.requestHandler
    ? [
        ["HANDLER_FUNC_NAME", "main"],
        ["HANDLER_MOD_NAME", "handler"],
      ]
    : [];
  if (runtime.language === "nodejs") return renamed;
  const version = runtime.interpreter.replace("@", "");
  const home = "$(KUBELESS_INSTALL_VOLUME)";
  return [
    ...renamed,
    ["PYTHONPATH", `${home}/lib.${version}/site-packages:${home}`],
    ["PYTHONUNBUFFERED", "TRUE"],
  ];
}
