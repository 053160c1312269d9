/** The runtime's settings from its environment; names and defaults are those of the Function contract. */
export interface Settings {
  functionName: string;
  namespace: string;
  runtime: string;
  /** The handler is `main(request, response)`, not `main(event, context)`: so since nodejs26. */
  isRequestHandler: boolean;
  /** Undefined for all addresses of the machine, of both families. */
  host: string | undefined;
  port: number;
  /** File without extension, and the function that it exports. */
  moduleName: string;
  handlerName: string;
  /** What the handler is written for, where the user says so. */
  dialect: "lambda" | undefined;
  timeoutSeconds: number;
  bodyLimitMb: number;
  /** Requests that the Function has at a time, 0 for any number, undefined for what its kind has by default; and those that may wait. */
  concurrency: number | undefined;
  queueLength: number;
  /** Where Events are published; empty when there is nowhere. */
  publisherAddress: string;
  /** Where spans are sent, by OTLP over HTTP; empty when there is nowhere. */
  traceEndpoint: string;
  accessLog: boolean;
  /** Lines with time, level and invocation; undefined for what `console` writes as it is. */
  logFormat: "json" | "text" | undefined;
  /** Pages of every origin may read the answers, and ask for it beforehand; undefined for as the handler's contract has it. */
  cors: boolean | undefined;
  /** For development: new code is loaded when a file changes. */
  hotReload: boolean;
  /** Where Node.js' inspector listens; empty for nowhere. */
  inspect: string;
  /** Descriptor that readiness is written to. */
  readyDescriptor: number | undefined;
  /** How long a stopping runtime keeps accepting connections, until requests are no longer sent to it. */
  shutdownDelayMs: number;
}

/** A setting has several names where the contract renamed it; the newest that is set counts. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const runtime = env["FUNC_RUNTIME"] || `nodejs${process.versions.node.split(".")[0]}`;
  return {
    functionName: env["FUNC_NAME"] ?? "",
    namespace: env["SERVICE_NAMESPACE"] ?? "",
    runtime,
    isRequestHandler: Number(/^nodejs(\d+)$/.exec(runtime)?.[1] ?? 0) >= 26,
    host: env["SERVER_HOST"] || undefined,
    port: number(env, ["FUNC_PORT", "SERVER_PORT"], 8080, 0, 65_535),
    moduleName: env["HANDLER_MOD_NAME"] || env["MOD_NAME"] || "handler",
    handlerName: env["HANDLER_FUNC_NAME"] || env["FUNC_HANDLER"] || "main",
    dialect: choice(env, "HANDLER_DIALECT", ["lambda"]),
    timeoutSeconds: number(env, ["FUNC_TIMEOUT"], 180, 0.001, 86_400),
    bodyLimitMb: number(env, ["FUNC_BODY_MB_LIMIT", "REQ_MB_LIMIT"], 1, 0, 4096),
    concurrency: env["SERVER_CONCURRENCY"]
      ? number(env, ["SERVER_CONCURRENCY"], 0, 0, 1_000_000)
      : undefined,
    queueLength: number(env, ["SERVER_QUEUE_LENGTH"], 1000, 0, 1_000_000),
    publisherAddress: env["PUBLISHER_PROXY_ADDRESS"] ?? "",
    traceEndpoint: env["TRACE_COLLECTOR_ENDPOINT"] ?? "",
    accessLog: Boolean(env["SERVER_INTERNAL_LOGGER"] || env["KYMA_INTERNAL_LOGGER_ENABLED"]),
    logFormat: choice(env, "FUNC_LOG_FORMAT", ["json", "text"]),
    cors: isOn(env, "FUNC_CORS"),
    hotReload: isOn(env, "FUNC_HOT_RELOAD") ?? false,
    inspect: env["FUNC_INSPECT"] ?? "",
    readyDescriptor: env["SPRY_READY_FD"] ? number(env, ["SPRY_READY_FD"], 3, 0, 1024) : undefined,
    shutdownDelayMs: number(
      env,
      ["FUNC_SHUTDOWN_DELAY_MS"],
      defaultShutdownDelayMs(env),
      0,
      60_000,
    ),
  };
}

/** Who waits for a word that the code is loaded also sends no more requests at once; a cluster takes its time. */
const defaultShutdownDelayMs = (env: NodeJS.ProcessEnv) => (env["SPRY_READY_FD"] ? 2000 : 5000);

function number(
  env: NodeJS.ProcessEnv,
  names: string[],
  otherwise: number,
  min: number,
  max: number,
): number {
  const name = names.find((each) => env[each]);
  if (name === undefined) return otherwise;
  const value = Number(env[name]);
  if (value >= min && value <= max) return value;
  throw new Error(`${name}=${env[name]}: expected a number from ${min} to ${max}`);
}

function choice<T extends string>(
  env: NodeJS.ProcessEnv,
  name: string,
  choices: readonly T[],
): T | undefined {
  const value = env[name];
  if (!value) return undefined;
  const found = choices.find((each) => each === value.toLowerCase());
  if (found) return found;
  throw new Error(`${name}=${value}: expected ${choices.join(" or ")}`);
}

/** Undefined when it is not set. */
function isOn(env: NodeJS.ProcessEnv, name: string): boolean | undefined {
  const value = choice(env, name, ["true", "1", "on", "false", "0", "off"]);
  return value === undefined ? undefined : ["true", "1", "on"].includes(value);
}
