/**
 * The server in every Node.js Function's image: loads the Function, then listens, then says that it
 * is ready. It is bundled into one CommonJS file, and starts with as little of Node.js as will do.
 */
import { closeSync, writeSync } from "node:fs";
import { inspect } from "node:util";
import { atStop } from "./background-work.ts";
import { monotonicMs } from "./clock.ts";
import { writeReadableStacks } from "./console.ts";
import { cpuLimit } from "./cpu-limit.ts";
import { type FunctionResponse } from "./function-response.ts";
import { functionsFramework } from "./dialects/functions-framework.ts";
import { type FunctionHandler } from "./handler.ts";
import { type EventLine } from "./lambda/event-line.ts";
import { leaveLastWords } from "./last-words.ts";
import { LoadError } from "./load-error.ts";
import { MainProgramError, startMainProgram, takeMainProgram } from "./application/main-program.ts";
import { loadHandler, programHandler } from "./load-handler.ts";
import { type Invocation } from "./invoke.ts";
import { logError } from "./log.ts";
import { loaded, nothingLeft } from "./long-load.ts";
import { Metrics } from "./metrics.ts";
import { traceOutgoingRequests } from "./outgoing-trace.ts";
import { Publisher } from "./publisher.ts";
import { provideWebClasses } from "./web/provide-web-classes.ts";
import { provideModules } from "./provided-modules.ts";
import { createSdk } from "./sdk.ts";
import {
  createFunctionServer,
  type FunctionServer,
  loadTracing,
  requestsUnderWay,
} from "./server.ts";
import { readSettings, type Settings } from "./settings.ts";
import { atSignal, endOnSignal, shutDownOnSignal } from "./shutdown.ts";
import { followed, surviveErrors } from "./stray-errors.ts";
import { describeError, describeLoadError } from "./stack.ts";

/** Cores. The presets XS to M have less. */
const littleCpu = 0.5;

async function main(): Promise<void> {
  const threadOf = process.env["SPRY_EVENT_THREAD"];
  if (threadOf !== undefined) return serveThread(threadOf);
  endOnSignal();
  const isWarm = process.env["SPRY_WARM_FD"] !== undefined;
  // Of a program that `node` runs when this returns: nothing is waited for until it is prepared.
  const program = takeMainProgram();
  const directory = program ?? (await functionDirectory());
  // Of a process that waited for its Function, since it was handed over.
  const began = monotonicMs() - (isWarm ? 0 : process.uptime() * 1000);
  const settings = readSettings(process.env);
  // Ours to write to: the Function must not find it.
  delete process.env["SPRY_READY_FD"];
  const isProgram = program !== undefined;
  if (!isProgram && settings.hotReload && (await import("node:cluster")).default.isPrimary) {
    // What follows from the descriptor holds for its children too.
    process.env["FUNC_SHUTDOWN_DELAY_MS"] = String(settings.shutdownDelayMs);
    const { superviseReloads } = await import("./development/hot-reload.ts");
    return await superviseReloads(directory, () => sayReady(settings));
  }
  const openInspector = settings.inspect ? await inspecting(settings, directory) : undefined;
  openInspector?.();
  if (!openInspector) writeReadableStacks();
  const publisher = prepare(directory, settings);
  const handler = isProgram
    ? await programHandler(settings)
    : await reportExit(() => loadHandler(directory, settings, publisher)).catch(
        (error: unknown) => {
          if (error instanceof MainProgramError) return beMain(error, directory, settings);
          throw error;
        },
      );
  if (!handler) return;
  Error.stackTraceLimit = 10;
  await runStart(handler);
  // A debugger stops in the thread that it knows.
  if (handler.events && !openInspector) addThreads(handler.events, directory);
  surviveErrors(!handler.cors && !settings.hotReload);
  tellOfExit();
  const metrics = new Metrics(settings.functionName);
  const call = followed(handler);
  const invocation: Invocation = { handler: { ...handler, call }, settings, metrics };
  const server = createFunctionServer(invocation);
  if (handler.stop) atStop(async () => void (await handler.stop?.()));
  if (settings.traceEndpoint) await loadTracing(invocation);
  if (settings.logFormat) {
    const { formatLogs, runInvocation } = await import("./invocation-log.ts");
    formatLogs(settings.logFormat);
    invocation.follow = runInvocation;
  }
  const own = handler.server;
  if (own) server.on("upgrade", (...parts) => own.emit("upgrade", ...parts));
  const closeWebSockets =
    handler.websocket &&
    (await import("./websocket/accept-websockets.ts")).acceptWebSockets(server, invocation);
  await listen(server, settings);
  metrics.startSeconds = (monotonicMs() - began) / 1000;
  shutDownOnSignal(server, settings.shutdownDelayMs, closeWebSockets);
  if (settings.hotReload)
    (await import("./development/reloaded.ts")).serveReloaded(server, () => openInspector?.());
  else sayReady(settings);
  // A debugger that holds the process does not block a request.
  if (openInspector) return;
  watchSoon(server, settings);
  if (process.env["NODE_COMPILE_CACHE"]) setTimeout(keepCompiled, 1000).unref();
}

/** What the Function's code finds when it is loaded. */
function prepare(directory: string, settings: Settings): Publisher {
  const publisher = new Publisher(settings.publisherAddress);
  provideWebClasses();
  traceOutgoingRequests();
  provideModules(
    directory,
    {
      sdk: () => createSdk(settings, publisher),
      "@google-cloud/functions-framework": () => functionsFramework,
    },
    ["@google-cloud/functions-framework"],
  );
  // The runtime's own frames are on top of the Function's while it loads.
  Error.stackTraceLimit = 30;
  return publisher;
}

/** Loaded with the first event that waits: most Functions never have one. */
function addThreads(events: EventLine, directory: string): void {
  events.addThreads(async () => {
    const { EventThreads } = await import("./lambda/event-threads.ts");
    return new EventThreads(events, directory);
  });
  atStop(() => events.close());
}

/** In a further thread of a Lambda handler, which the first thread sends events. */
async function serveThread(directory: string): Promise<void> {
  delete process.env["SPRY_EVENT_THREAD"];
  const settings = readSettings(process.env);
  writeReadableStacks();
  const publisher = prepare(directory, settings);
  const handler = await loadHandler(directory, settings, publisher, false);
  Error.stackTraceLimit = 10;
  await runStart(handler);
  const { serveEvents } = await import("./lambda/thread-main.ts");
  await serveEvents(handler, settings);
}

/** Node.js writes what it has compiled when a process ends by itself, which hardly any does. */
function keepCompiled(): void {
  process.getBuiltinModule("node:module").flushCompileCache();
}

/** Next to this file; or, for a process that waits for its Function, wherever that Function's settings say. */
async function functionDirectory(): Promise<string> {
  const descriptor = process.env["SPRY_WARM_FD"];
  if (descriptor === undefined) return `${__dirname}/function`;
  const directory = await (await import("./warm-process.ts")).becomeFunction(Number(descriptor));
  return directory ?? process.exit(0);
}

/** What opens the inspector, if it is asked for: more than once, as its port may be another version's. */
async function inspecting(
  { inspect, moduleName }: Settings,
  directory: string,
): Promise<() => void> {
  const { openInspector } = await import("./development/inspector.ts");
  const { findModule } = await import("./find-module.ts");
  const fileOf = () => {
    try {
      return findModule(directory, moduleName).path;
    } catch {
      // Loading it says so.
      return undefined;
    }
  };
  return () => openInspector(inspect, fileOf());
}

/** The program is started again, as the main one of another process. */
async function beMain(
  program: MainProgramError,
  directory: string,
  settings: Settings,
): Promise<undefined> {
  if (settings.hotReload) (await import("./development/reloaded.ts")).reportMainProgram(program);
  else startMainProgram(program, directory, settings);
}

async function runStart({ start }: FunctionHandler): Promise<void> {
  if (!start) return;
  const work = Promise.resolve().then(() => start());
  const ended = await loaded(work, "the Function's start has not ended yet").catch(
    (cause: unknown) => {
      const text = cause instanceof Error ? cause.message : String(cause);
      throw new LoadError(`starting the Function: ${text}`, { cause });
    },
  );
  if (ended === nothingLeft)
    throw new LoadError(
      "starting the Function: it waits for what never comes: nothing is left to run",
    );
}

/**
 * After readiness has been reported, and before the first request is handled. It takes 5 ms of a processor, though:
 * where a start has to wait for each of them, it runs after the first response, or after a second.
 */
function watchSoon(server: FunctionServer, settings: Settings): void {
  const limit = cpuLimit();
  if (limit === undefined || limit >= littleCpu)
    return void setImmediate(() => void watch(settings));
  let hasBegun = false;
  const begin = () => {
    if (hasBegun) return;
    hasBegun = true;
    server.off("request", onRequest);
    void watch(settings);
  };
  const onRequest = (_request: unknown, response: FunctionResponse) =>
    response.once("close", () => setImmediate(begin));
  server.on("request", onRequest);
  setTimeout(begin, 1000);
}

/** In time to report where it hangs when a liveness probe has given up: the SIGTERM that follows is not handled. */
async function watch({ timeoutSeconds }: Settings): Promise<void> {
  const { watchEventLoop } = await import("./watchdog.ts");
  watchEventLoop(Math.min(Math.max(timeoutSeconds, 2), 30) * 1000, requestsUnderWay);
}

/** An exit in the middle of loading, with 0 above all, would be a start that failed without a word. */
function reportExit<T>(load: () => Promise<T>): Promise<T> {
  const exit = process.exit.bind(process);
  process.exit = (given) => {
    const code = Number(given ?? process.exitCode ?? 0);
    const what = `the process ended with code ${code} while it was loaded, by process.exit`;
    const call = new Error(what);
    process.stderr.write(`loading the Function: ${describeError(call).replace("Error: ", "")}\n`);
    return exit(code || 1);
  };
  // An end by a signal is not the code's.
  atSignal(() => (process.exit = exit));
  return load().finally(() => (process.exit = exit));
}

/** An exit ends every request under way with it: the log names the call that caused it. */
function tellOfExit(): void {
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    const call = new Error(`process.exit(${code ?? ""}) was called${requestsUnderWay()}`);
    logError("the Function ended its process", call);
    leaveLastWords(`the Function ended its process: ${describeError(call)}\n`);
    return exit(code);
  };
  atSignal(() => (process.exit = exit));
}

async function listen(server: FunctionServer, { host, port }: Settings): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // Where no host is given Node.js need not look whether it is one: 3 ms of each start.
    server.listen({ ...(host !== undefined && { host }), port, backlog: 1024 }, resolve);
  });
}

/** The parent may have ended meanwhile, and then no process waits for it. */
function sayReady({ readyDescriptor }: Settings): void {
  if (readyDescriptor === undefined) return;
  try {
    writeSync(readyDescriptor, "ready\n");
    closeSync(readyDescriptor);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
}

/** Ends with 1 and the reason on stderr. */
function fail(error: unknown): void {
  if (!(error instanceof LoadError)) {
    logError("starting the runtime", error);
    process.exit(1);
  }
  process.stderr.write(`${error.message}\n`);
  const { cause } = error;
  if (cause === undefined) process.exit(1);
  const text = cause instanceof Error ? describeLoadError(cause) : inspect(cause);
  if (text !== undefined) {
    process.stderr.write(`${text}\n`);
    process.exit(1);
  }
  process.removeAllListeners("uncaughtException");
  setImmediate(() => {
    throw cause;
  });
}

main().catch(fail);
