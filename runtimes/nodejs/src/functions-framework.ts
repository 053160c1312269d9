import { readCloudEvent } from "./cloud-event.ts";
import { type FunctionHandler, isThenable, type UserFunction } from "./handler.ts";
import { type Exports } from "./load-module.ts";
import { RequestError } from "./request-error.ts";
import { requestHandler } from "./request-handler.ts";

/** Functions by name, registered while the Function's code was loaded. */
const registered = new Map<string, FunctionHandler>();

/**
 * What `require("@google-cloud/functions-framework")` gives a Function: the same registration,
 * without the server that the package brings.
 */
export const functionsFramework = {
  http: (name: string, handler: UserFunction) => void registered.set(name, requestHandler(handler)),
  cloudEvent: (name: string, handler: UserFunction) =>
    void registered.set(name, cloudEventHandler(handler)),
};

/**
 * The function that FUNCTION_TARGET names, registered or exported (then FUNCTION_SIGNATURE_TYPE is
 * `http` or `cloudevent`); without FUNCTION_TARGET the one that was registered last.
 */
export function targetOf(module: Exports): FunctionHandler | undefined {
  const { FUNCTION_TARGET: target, FUNCTION_SIGNATURE_TYPE: signature } = process.env;
  if (target === undefined) return [...registered.values()].at(-1);
  const found = module[target];
  if (registered.has(target) || typeof found !== "function") return registered.get(target);
  return signature === "cloudevent"
    ? cloudEventHandler(found as UserFunction)
    : requestHandler(found as UserFunction);
}

/** `handler(event)`: attributes and `data` side by side. Nothing returned is 204. */
function cloudEventHandler(handler: UserFunction): FunctionHandler {
  return {
    body: "parsed",
    call(request, response) {
      const event = readCloudEvent(request, request.body);
      if (!event) throw new RequestError(400, "the request is no CloudEvent");
      const orNothing = (result: unknown) => {
        if (result === undefined || result === null) response.status(204);
        return result;
      };
      const result = handler({ ...event.attributes, data: event.data });
      return isThenable(result) ? Promise.resolve(result).then(orNothing) : orNothing(result);
    },
  };
}
