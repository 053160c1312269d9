import { basename } from "node:path";
import type { ApplicationOptions } from "./application/application-handler.ts";
import { HandedServers } from "./application/handed-servers.ts";
import { targetOf } from "./dialects/functions-framework.ts";
import { eventHandler } from "./event-handler.ts";
import { findModule } from "./find-module.ts";
import { type FunctionHandler, type UserFunction } from "./handler.ts";
import { provideAwsLambda } from "./dialects/lambda-streaming.ts";
import { isLikelyLambda, setLambdaEnvironment } from "./lambda/lambda-environment.ts";
import { LoadError } from "./load-error.ts";
import { type Exports, loadModule } from "./load-module.ts";
import { loaded, nothingLeft } from "./long-load.ts";
import { asksWhetherMain, MainProgramError } from "./application/main-program.ts";
import { findTypeScript } from "./typescript-names.ts";
import { memberOf } from "./member-of.ts";
import { type Publisher } from "./publisher.ts";
import { requestHandler, webSocketsOnly } from "./request-handler.ts";
import { type Settings } from "./settings.ts";

/** Loads the Function's code and finds in it what answers requests. `isFirst`: not in a further thread. */
export async function loadHandler(
  directory: string,
  settings: Settings,
  publisher: Publisher,
  isFirst = true,
): Promise<FunctionHandler> {
  const file = findModule(directory, settings.moduleName);
  const name = basename(file.path);
  provideAwsLambda();
  if (file.start) await (await import("./apply-start.ts")).applyStart(file.start, directory);
  const resetEnvironment = isLikelyLambda(file.path, settings)
    ? setLambdaEnvironment(directory, file.path, settings)
    : undefined;
  const handed = new HandedServers(settings.port);
  const waits = `${name} has not loaded yet: if a top-level await waits, the Function starts when that ends`;
  const found = await loaded(loadModule(file), waits).catch(async (cause: unknown) => {
    const text = `loading ${name}: ${sentenceOf(cause)}`;
    throw new LoadError((await withForeignUse(text, file.path)) + ofOthers(cause), { cause });
  });
  if (found === nothingLeft)
    throw new LoadError(
      `loading ${name}: a top-level await waits for what never comes: nothing is left to run`,
    );
  const { exports: module } = found;
  const websocket = functionOf(module, "websocket");
  const options = { settings, file: file.path };
  const given =
    (await namedHandler(module, name, options, publisher)) ??
    mainHandler(module, settings, publisher);
  const isAsked = !given && handed.forRequests !== undefined;
  const recognised =
    given ?? (isAsked ? undefined : await exportedHandler(module, options, websocket));
  if (recognised) {
    if (recognised.isLambda) setLambdaEnvironment(directory, file.path, settings);
    else resetEnvironment?.();
    // The program's own server answers what the application does, and more.
    const server = recognised.isApplication ? handed.around(recognised.listener) : undefined;
    handed.release(server, !recognised.isApplication, isFirst);
    const start = bothOf(functionOf(module, "start"), recognised.start);
    const stop = bothOf(functionOf(module, "stop"), recognised.stop);
    return {
      ...recognised,
      websocket: websocket ?? recognised.websocket,
      server: server ?? recognised.server,
      start,
      stop,
    };
  }
  resetEnvironment?.();
  const exported = namesIn(module);
  const nothing = nothingFound(name, settings.handlerName, exported) + wayOut(module, settings);
  if (!handed.first && asksWhetherMain(file.path, directory))
    throw new MainProgramError(file, directory, nothing);
  // The program starts by itself: what it exports as `start` would do so again.
  const has = exported.length > 0 ? `no handler, only ${exported.join(", ")},` : "no exports";
  const served = await servedProgram(handed, settings, `${name} has ${has}`);
  if (served) return { ...served, websocket, stop: functionOf(module, "stop") };
  throw new LoadError(await withForeignUse(nothing, file.path));
}

/** The cause may be that the code is for another platform. */
async function withForeignUse(text: string, path: string): Promise<string> {
  const { foreignUse } = await import("./foreign-platforms.ts");
  const use = foreignUse(path, false);
  return use === undefined ? text : `${text}; ${use}`;
}

const protocols: Record<string, string> = {
  "cloudflare:": "Cloudflare Workers",
  "bun:": "Bun",
  "npm:": "Deno",
  "jsr:": "Deno",
};

/** What only another platform's runtime has, without it being declared. */
function ofOthers(cause: unknown): string {
  const { code, message = "" } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
  const [, protocol = ""] = /Received protocol '([a-z]+:)'/.exec(message) ?? [];
  if (protocols[protocol] !== undefined)
    return `; modules \`${protocol}\` are part of ${protocols[protocol]}, and do not exist here`;
  const isMissing = code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND";
  const [, name] = /'(aws-sdk|@aws-sdk\/[^'/]+)/.exec(message) ?? [];
  return isMissing && name !== undefined
    ? `; ${name} is not part of this runtime, as it is of AWS Lambda's: add it to the dependencies in package.json`
    : "";
}

/** What a program answers that `node` runs as the main one of this process: it has to listen. */
export async function programHandler(settings: Settings): Promise<FunctionHandler> {
  const [, file = ""] = process.argv;
  if (/\.[mc]?ts$/.test(file)) findTypeScript();
  const what = `${basename(file)} has no handler`;
  const served = await servedProgram(new HandedServers(settings.port), settings, what);
  if (served) return served;
  throw new LoadError(
    `loading ${basename(file)}: it does not export a handler, and started as the main program it does not listen`,
  );
}

async function servedProgram(
  handed: HandedServers,
  settings: Settings,
  what: string,
): Promise<FunctionHandler | undefined> {
  const server = handed.forRequests ?? (await handed.awaited(what));
  handed.release(server, false);
  if (!server) return undefined;
  return (await import("./application/application-handler.ts")).serverHandler(server, settings);
}

function nothingFound(name: string, handlerName: string, exported: readonly string[]): string {
  const what = `loading ${name}: it does not export a function named ${handlerName}; `;
  return (
    what + (exported.length > 0 ? `its exports are ${exported.join(", ")}` : "it has no exports")
  );
}

/** Names of their own are known to their authors only. */
function wayOut(module: Exports, { handlerName }: Settings): string {
  const hasFunction = namesIn(module).some((each) => functionOf(module, each));
  return hasFunction && handlerName === "main"
    ? "; name the handler by HANDLER_FUNC_NAME below env of spry.yaml, and one of AWS Lambda by `handler: file.name` with `dialect: lambda`"
    : "";
}

function namesIn(module: Exports): string[] {
  return Object.keys(module).filter((key) => key !== "module.exports");
}

/** What a person has named: by HANDLER_FUNC_NAME, or as Google's framework has it. The platform itself names `main`. */
async function namedHandler(
  module: Exports,
  name: string,
  options: ApplicationOptions,
  publisher: Publisher,
): Promise<FunctionHandler | undefined> {
  const { handlerName, dialect } = options.settings;
  if (dialect === "lambda") return await namedLambda(module, name, options.settings);
  if (handlerName === "main") return targetOf((each) => exportOf(module, each), namesIn(module));
  const found = exportOf(module, handlerName);
  if (found === undefined) throw new LoadError(nothingFound(name, handlerName, namesIn(module)));
  const { handlerOf } = await import("./dialects/named-handler.ts");
  const initContext = functionOf(module, "initContext");
  const handler = await handlerOf(found, { ...options, initContext });
  if (handler) return handler;
  if (typeof found !== "function")
    throw new LoadError(nothingFound(name, handlerName, namesIn(module)));
  return ofContract(found as UserFunction, options.settings, publisher);
}

/** By its name, or the usual ones, or as the only function of the module. */
async function namedLambda(
  module: Exports,
  name: string,
  settings: Settings,
): Promise<FunctionHandler> {
  const exported = namesIn(module);
  const functions = exported.filter((each) => functionOf(module, each));
  const usual = [
    "handler",
    "lambdaHandler",
    "default",
    ...(functions.length === 1 ? functions : []),
  ];
  const names = [settings.handlerName, ...(settings.handlerName === "main" ? usual : [])];
  const found =
    names.map((each) => functionOf(module, each)).find((each) => each !== undefined) ??
    (settings.handlerName === "main" && typeof module === "function" ? module : undefined);
  if (!found) throw new LoadError(nothingFound(name, settings.handlerName, exported));
  const { lambdaHandler } = await import("./dialects/lambda-handler.ts");
  const { isStreaming } = await import("./dialects/lambda-streaming.ts");
  return lambdaHandler(found, settings, isStreaming(found));
}

/** The contract's own form is what nearly all have: the others' code is looked at only when it is missing. */
function mainHandler(
  module: Exports,
  settings: Settings,
  publisher: Publisher,
): FunctionHandler | undefined {
  const main = settings.handlerName === "main" && functionOf(module, "main");
  return main ? ofContract(main, settings, publisher) : undefined;
}

function ofContract(main: UserFunction, settings: Settings, publisher: Publisher): FunctionHandler {
  const handler = settings.isRequestHandler
    ? requestHandler(main)
    : eventHandler(main, settings, publisher);
  return { ...handler, cors: true };
}

async function exportedHandler(
  module: Exports,
  options: ApplicationOptions,
  websocket: UserFunction | undefined,
): Promise<FunctionHandler | undefined> {
  const { recogniseHandler } = await import("./dialects/recognise-handler.ts");
  const { refuseForeign } = await import("./foreign-platforms.ts");
  refuseForeign(module, basename(options.file), options.file);
  return (await recogniseHandler(module, options)) ?? (websocket && webSocketsOnly);
}

/** The Function's own, and that of its kind of handler. */
function bothOf(first: UserFunction | undefined, second: UserFunction | undefined) {
  if (!first || !second) return first ?? second;
  return async () => {
    await first();
    await second();
  };
}

function functionOf(module: Exports, name: string): UserFunction | undefined {
  const found = exportOf(module, name);
  return typeof found === "function" ? (found as UserFunction) : undefined;
}

/** `module.exports = { main }`, `export function main`, `export default { main }`. */
function exportOf(module: Exports | undefined, name: string): unknown {
  const own = module && memberOf(module, name);
  if (own !== undefined) return own;
  const fallback = module && memberOf(module, "default");
  return fallback !== null && typeof fallback === "object" ? memberOf(fallback, name) : undefined;
}

/** The first line of what went wrong, without the list of files that `require` appends. */
function sentenceOf(cause: unknown): string {
  if (!(cause instanceof Error)) return `the module threw ${String(cause)}`;
  const [message = ""] = cause.message.split("\n");
  return cause.name === "Error" ? message : `${cause.name}: ${message}`;
}
