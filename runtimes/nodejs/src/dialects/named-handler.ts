/** What a person has named as the handler: its own shape says what it is. */
import { type ApplicationOptions, asApplication } from "../application/application-handler.ts";
import { type FunctionHandler, type UserFunction } from "../handler.ts";
import { memberOf } from "../member-of.ts";
import { namedHandler } from "./context-first.ts";
import { isStreaming } from "./lambda-streaming.ts";

export interface NamedOptions extends ApplicationOptions {
  /** Nuclio's, of the same module. */
  initContext: UserFunction | undefined;
}

/** Undefined for a function of the contract's own form. */
export async function handlerOf(
  found: unknown,
  options: NamedOptions,
): Promise<FunctionHandler | undefined> {
  const { settings, initContext } = options;
  if (found !== null && typeof found === "object") {
    const fetch = memberOf(found, "fetch");
    if (typeof fetch === "function")
      return (await import("./fetch-handler.ts")).fetchHandler(fetch.bind(found), settings);
  }
  if (typeof found === "function") {
    const handler = found as UserFunction;
    if (settings.handlerName === "lambdaHandler" || isStreaming(found)) {
      const { lambdaHandler } = await import("./lambda-handler.ts");
      return lambdaHandler(handler, settings, isStreaming(found));
    }
    const contextFirst = await namedHandler(handler, initContext);
    if (contextFirst) return contextFirst;
    // That is the contract's own form there.
    if (settings.isRequestHandler && !("handle" in found)) return undefined;
  }
  return asApplication(found, options);
}
