/**
 * Handlers of Nuclio, `(context, event)`, and of Fission, `(context)` and `(context, callback)`. No other kind has
 * the context first: the names of the parameters in the function's own source identify these.
 */
import { type FunctionHandler, type UserFunction } from "../handler.ts";
import { parameterNames } from "./parameter-names.ts";

type Order = "nuclio" | "fission" | "fission websocket";

function orderOf(handler: UserFunction): Order | undefined {
  const [first = "", second = ""] = parameterNames(handler);
  if (isContext(first)) return second === "" || isCallback(second) ? "fission" : "nuclio";
  if (isEvent(second) && !isEvent(first)) return "nuclio";
  if (/^(ws|socket|websocket)$/i.test(first) && second === "clients") return "fission websocket";
  const isTakenApart = /^\{\s*(request|response)\s*(,\s*(request|response)\s*)?,?\s*\}$/.test(
    first,
  );
  return isTakenApart && (second === "" || isCallback(second)) ? "fission" : undefined;
}

const isContext = (name: string) => /^[_$]*(context|ctx)$/i.test(name);
const isEvent = (name: string) => /^[_$]*(event|evt|ev)$/i.test(name);
const isCallback = (name: string) => /^[_$]*(callback|cb|done)$/i.test(name);

/** A function that is exported under a name of its own, as both have them. */
export async function namedHandler(
  handler: UserFunction,
  initContext: UserFunction | undefined,
): Promise<FunctionHandler | undefined> {
  const order = orderOf(handler);
  if (order === "nuclio") return await nuclio(handler, initContext);
  return order && (await fission(handler, order));
}

/** Nuclio's are called `handler` unless something else is said, also when they need no event. */
export async function nuclioHandler(
  handler: UserFunction | undefined,
  initContext: UserFunction | undefined,
): Promise<FunctionHandler | undefined> {
  if (!handler) return undefined;
  const isOurs = orderOf(handler) === "nuclio" || isContext(parameterNames(handler)[0] ?? "");
  return isOurs || initContext ? await nuclio(handler, initContext) : undefined;
}

/** Fission's is the module itself. One that takes nothing could be OpenFaaS', and works like that too. */
export async function fissionHandler(
  handler: UserFunction | undefined,
): Promise<FunctionHandler | undefined> {
  if (!handler) return undefined;
  const order = orderOf(handler);
  const takesNothing = handler.length === 0 && parameterNames(handler).length === 0;
  return order === "fission" || order === "fission websocket" || takesNothing
    ? await fission(handler, order)
    : undefined;
}

async function nuclio(handler: UserFunction, initContext: UserFunction | undefined) {
  return (await import("./nuclio-handler.ts")).nuclioHandler(handler, initContext);
}

async function fission(handler: UserFunction, order: Order | undefined) {
  if (order === "fission websocket")
    return (await import("../websocket/fission-websocket.ts")).fissionWebSocket(handler);
  return (await import("./fission-handler.ts")).fissionHandler(handler);
}
