import { basename } from "node:path";
import { HandedServer } from "./application/handed-server.ts";
import { eventHandler } from "./event-handler.ts";
import { findModule } from "./find-module.ts";
import { type FunctionHandler, type UserFunction } from "./handler.ts";
import { isStreaming, provideAwsLambda } from "./dialects/lambda-streaming.ts";
import { LoadError } from "./load-error.ts";
import { type Exports, loadModule } from "./load-module.ts";
import { memberOf } from "./member-of.ts";
import { type Publisher } from "./publisher.ts";
import { requestHandler, webSocketsOnly } from "./request-handler.ts";
import { type Settings } from "./settings.ts";

/** Loads the Function's code and finds in it what answers requests. */
export async function loadHandler(
  directory: string,
  settings: Settings,
  publisher: Publisher,
): Promise<FunctionHandler> {
  const { moduleName, handlerName } = settings;
  const file = findModule(directory, moduleName);
  const name = basename(file.path);
  let module: Exports;
  provideAwsLambda();
  const handed = new HandedServer(settings.port);
  try {
    ({ exports: module } = await loadModule(file));
  } catch (cause) {
    throw new LoadError(`loading ${name}: ${sentenceOf(cause)}`, { cause });
  }
  const websocket = functionOf(module, "websocket");
  const exported = (await handlerOf(module, settings, publisher)) ?? (websocket && webSocketsOnly);
  const handler = exported ?? (await listeningProgram(handed, module, settings));
  // An application listens for itself as well where it is run without us.
  if (exported?.isApplication) handed.release();
  else if (exported) handed.giveBack();
  if (handler) {
    const start = bothOf(functionOf(module, "start"), handler.start);
    const stop = bothOf(functionOf(module, "stop"), handler.stop);
    return { ...handler, websocket: websocket ?? handler.websocket, start, stop };
  }
  const found = Object.keys(module).filter((key) => key !== "module.exports");
  throw new LoadError(
    `loading ${name}: it does not export a function named ${handlerName}; ` +
      (found.length > 0 ? `its exports are ${found.join(", ")}` : "it has no exports"),
  );
}

/** A program whose server answers: one that has started it by now, or will and exports nothing. */
async function listeningProgram(
  handed: HandedServer,
  module: Exports,
  settings: Settings,
): Promise<FunctionHandler | undefined> {
  const server = await (isEmpty(module) ? handed.awaited() : handed.taken());
  if (!server) return undefined;
  return (await import("./application/application-handler.ts")).serverHandler(server, settings);
}

/** No exports; imported, a CommonJS module without any has itself as the default one. */
function isEmpty({ default: own, "module.exports": same, ...others }: Exports): boolean {
  const isNone = own === undefined || (own === same && Object.keys(own as object).length === 0);
  return isNone && Object.keys(others).length === 0;
}

async function handlerOf(
  module: Exports,
  settings: Settings,
  publisher: Publisher,
): Promise<FunctionHandler | undefined> {
  const main = exportOf(module, settings.handlerName);
  if (typeof main === "function") {
    const other = await otherHandler(main as UserFunction, module, settings);
    if (other) return other;
    const handler = settings.isRequestHandler
      ? requestHandler(main as UserFunction)
      : eventHandler(main as UserFunction, settings, publisher);
    return { ...handler, cors: true };
  }
  // The contract's own form is what nearly all have: the others' code is looked at only now.
  if (settings.handlerName !== "main") return undefined;
  return await (await import("./dialects/recognise-handler.ts")).recogniseHandler(module, settings);
}

/** What is called otherwise may be a neighbour's: they have no `main`. */
async function otherHandler(
  found: UserFunction,
  module: Exports,
  settings: Settings,
): Promise<FunctionHandler | undefined> {
  const { handlerName } = settings;
  if (handlerName === "main") return undefined;
  if (handlerName === "lambdaHandler") {
    const { lambdaHandler } = await import("./dialects/lambda-handler.ts");
    return lambdaHandler(found, settings, isStreaming(found));
  }
  const { namedHandler } = await import("./dialects/context-first.ts");
  return await namedHandler(found, functionOf(module, "initContext"));
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
