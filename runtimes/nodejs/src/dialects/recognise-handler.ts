/**
 * The handlers of other systems, recognised by the name they are exported under when there is no
 * `main`: first the one that we recommend, then those of the neighbours.
 */
import {
  type ApplicationOptions,
  asApplication,
  exportedApplication,
  fastifyPlugin,
  onlyListener,
} from "../application/application-handler.ts";
import { fissionHandler, nuclioHandler } from "./context-first.ts";
import { type FunctionHandler, type UserFunction } from "../handler.ts";
import { isStreaming } from "./lambda-streaming.ts";
import { type Exports } from "../load-module.ts";
import { memberOf } from "../member-of.ts";

type Recognise = (
  module: Exports,
  options: ApplicationOptions,
) => FunctionHandler | undefined | Promise<FunctionHandler | undefined>;

const forms: Recognise[] = [
  /** `export default { fetch(request, env, ctx) }`, also what Hono and its kind export. */
  async (module, { settings }) => {
    const found = objectWith(module, "fetch");
    return found && (await import("./fetch-handler.ts")).fetchHandler(found, settings);
  },
  /** `handler(req, res)`, and an application of that name. */
  async (module, options) => asApplication(unboundIn(module, "handler"), options),
  /** Nuclio: `handler(context, event)`. */
  async (module) => nuclioHandler(unboundIn(module, "handler"), unboundIn(module, "initContext")),
  /**
   * AWS Lambda behind a function URL or an HTTP API: `handler(event, context, callback)`, in its templates `lambdaHandler`. An
   * application next to it is what it adapts.
   */
  async (module, { settings }) => {
    for (const name of ["handler", "lambdaHandler"]) {
      const found = objectWith(module, name);
      if (!found) continue;
      const { lambdaHandler } = await import("./lambda-handler.ts");
      return lambdaHandler(found, settings, isStreaming(unboundIn(module, name)));
    }
    return undefined;
  },
  /** An application of Express, Koa or Fastify, a server or a listener of `node:http`: exported by default, as `app` or `server`. */
  exportedApplication,
  /** Knative's `func`: `handle(context, body or event)`. */
  async (module, { settings }) => {
    const found = objectWith(module, "handle");
    return found && (await import("./func-handler.ts")).funcHandler(found, settings);
  },
  /** The web's as a function, as at Vercel's edge and Netlify: `(request[, context])`. */
  async (module, { settings }) => {
    const found = moduleFunction(module);
    return found && (await import("./fetch-handler.ts")).fetchFunction(found, settings);
  },
  /** Fastify's plugin, as its command line starts it. */
  async (module, options) => {
    const found = moduleFunction(module);
    return found && fastifyPlugin(found, options);
  },
  /** `exports.hello = (req, res)`. */
  onlyListener,
  /** Fission: the module is a function, `(context)` or `(context, callback)`. */
  async (module) => fissionHandler(moduleFunction(module)),
  /** OpenFaaS: the module is a function, `(event, context, callback)`. */
  async (module) => {
    const found = moduleFunction(module);
    return found && (await import("./openfaas-handler.ts")).openFaasHandler(found);
  },
];

export async function recogniseHandler(
  module: Exports,
  options: ApplicationOptions,
): Promise<FunctionHandler | undefined> {
  for (const form of forms) {
    const handler = await form(module, options);
    if (handler) return handler;
  }
  return undefined;
}

/** The function of that name, bound to what it was found in: the default export or the module. */
function objectWith(module: Exports, name: string): UserFunction | undefined {
  return holders(module)
    .map((holder) => functionOf(holder, name)?.bind(holder))
    .find((found) => found !== undefined);
}

/** The same as it is: a bound function no longer knows how its parameters are called. */
function unboundIn(module: Exports, name: string): UserFunction | undefined {
  return holders(module)
    .map((holder) => functionOf(holder, name))
    .find((found) => found !== undefined);
}

function holders(module: Exports): Exports[] {
  const isHolder = (each: unknown) =>
    each !== null && (typeof each === "object" || typeof each === "function");
  return [memberOf(module, "default"), module].filter(isHolder) as Exports[];
}

function functionOf(holder: Exports, name: string): UserFunction | undefined {
  const found = memberOf(holder, name);
  return typeof found === "function" ? (found as UserFunction) : undefined;
}

function moduleFunction(module: Exports): UserFunction | undefined {
  const found: unknown = [memberOf(module, "default"), module].find(
    (each) => typeof each === "function",
  );
  return found as UserFunction | undefined;
}
