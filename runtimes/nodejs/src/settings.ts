/** What the environment tells the runtime; names and defaults are those of the Function contract. */
export interface Settings {
  functionName: string;
  namespace: string;
  runtime: string;
  host: string;
  port: number;
  /** File without extension, and the function that it exports. */
  moduleName: string;
  handlerName: string;
  timeoutSeconds: number;
  bodyLimitMb: number;
  /** Where Events are published; empty when there is nowhere. */
  publisherAddress: string;
  accessLog: boolean;
  /** Descriptor that readiness is written to. */
  readyDescriptor: number | undefined;
  /** How long a stopping runtime goes on accepting, until nobody sends it requests any more. */
  shutdownDelayMs: number;
}

export function readSettings(env: NodeJS.ProcessEnv): Settings {
  return {
    functionName: env["FUNC_NAME"] ?? "",
    namespace: env["SERVICE_NAMESPACE"] ?? "",
    runtime: env["FUNC_RUNTIME"] ?? `nodejs${process.versions.node.split(".")[0]}`,
    host: env["SERVER_HOST"] || "0.0.0.0",
    port: number(env, "FUNC_PORT", 8080, 0, 65_535),
    moduleName: env["MOD_NAME"] || "handler",
    handlerName: env["FUNC_HANDLER"] || "main",
    timeoutSeconds: number(env, "FUNC_TIMEOUT", 180, 0.001, 86_400),
    bodyLimitMb: number(env, "REQ_MB_LIMIT", 1, 0, 4096),
    publisherAddress: env["PUBLISHER_PROXY_ADDRESS"] ?? "",
    accessLog: Boolean(env["KYMA_INTERNAL_LOGGER_ENABLED"]),
    readyDescriptor: env["SPRY_READY_FD"] ? number(env, "SPRY_READY_FD", 3, 0, 1024) : undefined,
    shutdownDelayMs: number(env, "FUNC_SHUTDOWN_DELAY_MS", 2000, 0, 60_000),
  };
}

function number(env: NodeJS.ProcessEnv, name: string, otherwise: number, min: number, max: number) {
  const text = env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (value >= min && value <= max) return value;
  throw new Error(`${name}=${text}: expected a number from ${min} to ${max}`);
}
