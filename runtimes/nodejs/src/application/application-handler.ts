/**
 * Applications of the usual frameworks, exported as they are, and servers of `node:http`. They get the request and response
 * that their own server would make: Node.js' classes, with the body unread.
 */
import { basename } from "node:path";
import { IncomingMessage, Server, ServerResponse } from "node:http";
import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { parameterNames } from "../dialects/parameter-names.ts";
import { answered, type FunctionHandler, type UserFunction } from "../handler.ts";
import { LoadError } from "../load-error.ts";
import { type Exports } from "../load-module.ts";
import { logError } from "../log.ts";
import { memberOf } from "../member-of.ts";
import { checkLength } from "../request-body.ts";
import { type Settings } from "../settings.ts";
import { isListener, listenerHandler } from "./listener.ts";

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

interface Application {
  listener: Listener;
  start?: () => Promise<unknown>;
  stop?: () => Promise<unknown>;
  /** Its listeners to `upgrade` are served, too. */
  server?: Server;
}

/** Under which names applications are exported, the default export aside. */
const names = ["app", "server", "handler"];

/** What is needed to find an application's framework and serve it. */
export interface ApplicationOptions {
  settings: Settings;
  /** The file with the code: a router needs the Express that it finds. */
  file: string;
}

/** The application that a module exports; undefined when none of its exports is one. */
export function exportedApplication(
  module: Exports,
  options: ApplicationOptions,
): FunctionHandler | undefined {
  const own = memberOf(module, "default");
  const holders = [module, own].filter(isHolder);
  const candidates = [
    own,
    module,
    ...holders.flatMap((holder) => names.map((name) => memberOf(holder, name))),
  ];
  for (const candidate of candidates) {
    const application = asApplication(candidate, options);
    if (application) return application;
  }
  return undefined;
}

/** An application, a server or a listener; undefined for anything else. */
export function asApplication(
  found: unknown,
  { settings, file }: ApplicationOptions,
): FunctionHandler | undefined {
  if (!isHolder(found)) return undefined;
  const application = applicationOf(found, file);
  if (application) return applicationHandler(application, settings);
  return isListener(found) ? listenerHandler(found, settings) : undefined;
}

/** What a server of `node:http` answers. */
export function serverHandler(server: Server, settings: Settings): FunctionHandler {
  return applicationHandler(ofServer(server), settings);
}

/** The only function that a module exports, whatever its name, if it is a listener: Google's samples have names of their own. */
export function onlyListener(
  module: Exports,
  { settings }: ApplicationOptions,
): FunctionHandler | undefined {
  const functions = [...new Set(Object.keys(module).map((name) => memberOf(module, name)))].filter(
    (each) => typeof each === "function",
  );
  const [found] = functions;
  return functions.length === 1 && isListener(found) ? listenerHandler(found, settings) : undefined;
}

/**
 * A plugin by itself, `(fastify, opts[, done])`, as `fastify start` runs it: registered with an application that the code's own Fastify makes.
 * Throws a LoadError where the code has none.
 */
export function fastifyPlugin(
  found: UserFunction,
  { settings, file }: ApplicationOptions,
): FunctionHandler | undefined {
  if (!/^fastify(?:Instance)?$/i.test(parameterNames(found)[0] ?? "")) return undefined;
  const { createRequire } = process.getBuiltinModule("node:module");
  let fastify: (options: unknown) => FastifyLike;
  try {
    fastify = createRequire(file)("fastify") as typeof fastify;
  } catch {
    throw new LoadError(
      `loading ${basename(file)}: it exports a plugin of Fastify, and fastify is not among the dependencies of package.json`,
    );
  }
  const { options = {} } = found as { options?: object };
  const application = fastify(options);
  application.register(found, options);
  const handler = asApplication(application, { settings, file });
  return handler && { ...handler, isApplication: false };
}

function applicationOf(found: Record<string, unknown>, file: string): Application | undefined {
  if (found instanceof Server) return ofServer(found);
  const has = (...members: string[]) =>
    members.every((name) => typeof memberOf(found, name) === "function");
  // Express and Connect.
  if (typeof found === "function" && has("use", "handle"))
    return { listener: has("listen") ? found : ofRouter(found, file) };
  // Koa.
  if (has("use", "callback")) return { listener: (found["callback"] as () => Listener)() };
  // Fastify.
  if (has("ready", "inject", "close") && memberOf(found, "server") instanceof Server) {
    const { ready, close, server } = found as unknown as FastifyLike;
    return {
      ...ofServer(server),
      start: async () => await ready.call(found),
      stop: async () => await close.call(found),
    };
  }
  return undefined;
}

/** Routes of Express' expect its request and response, which a router alone does not provide. */
function ofRouter(router: unknown, file: string): Listener {
  const { createRequire } = process.getBuiltinModule("node:module");
  try {
    const express = createRequire(file)("express") as () => { use: (router: unknown) => Listener };
    return express().use(router);
  } catch {
    // It is another package's, for the bare request and response.
    return (request, response) =>
      (router as (...args: unknown[]) => unknown)(request, response, (error: unknown) => {
        if (error !== undefined && error !== null) logError("the router's last error", error);
        response.statusCode = error === undefined || error === null ? 404 : 500;
        response.end();
      });
  }
}

interface FastifyLike {
  register: (plugin: UserFunction, options: object) => unknown;
  ready: () => Promise<unknown>;
  close: () => Promise<unknown>;
  server: Server;
}

const ofServer = (server: Server): Application => ({
  listener: (request, response) => void server.emit("request", request, response),
  server,
});

function applicationHandler(
  { listener, server, start, stop }: Application,
  settings: Settings,
): FunctionHandler {
  return {
    body: "stream",
    isApplication: true,
    listener,
    hasRoutes: true,
    call(request, response) {
      checkLength(request, settings.bodyLimitMb);
      asNodes(request, response);
      const result = listener(request, response);
      return Promise.resolve(result).then(() => answered(response));
    },
    server,
    start,
    stop,
  };
}

/** Removes our own members: frameworks define members with the same names, and Express replaces the classes altogether. */
function asNodes(request: FunctionRequest, response: FunctionResponse): void {
  // From here on it is read as a stream: an end that was held back arrives.
  request.on("close", () => {});
  Object.setPrototypeOf(request, IncomingMessage.prototype);
  Object.setPrototypeOf(response, ServerResponse.prototype);
  for (const name of ["body", "rawBody", "res"]) Reflect.deleteProperty(request, name);
}

function isHolder(value: unknown): value is Record<string, unknown> {
  return value !== null && (typeof value === "object" || typeof value === "function");
}
