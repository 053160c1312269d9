import { Context } from "./context.ts";
import { createEvent } from "./event.ts";
import { answered, type FunctionHandler, isThenable, type UserFunction } from "./handler.ts";
import { logError } from "./log.ts";
import { refuse } from "./refuse.ts";
import { type Publisher, publishingWith } from "./publisher.ts";
import { sendResult } from "./result.ts";
import { type Settings } from "./settings.ts";

type SendResponse = (body?: unknown, status?: number, headers?: Record<string, string>) => void;

/** `main(event, context, sendResponse)`: the handler of all runtimes before nodejs26. */
export function eventHandler(
  main: UserFunction,
  settings: Settings,
  publisher: Publisher,
): FunctionHandler {
  const publishing = publishingWith(publisher);
  return {
    body: "parsed",
    call(request, response) {
      const event = createEvent(request, response, publishing);
      const sendResponse: SendResponse = (body, status, headers) => {
        if (response.headersSent) return;
        const fail = (error: unknown) => {
          logError("sending the handler's response", error);
          refuse(response, error);
        };
        try {
          if (headers) response.set(headers);
          if (status) response.status(status);
          sendResult(response, body)?.catch(fail);
        } catch (error) {
          fail(error); // its caller may be a timer, which tells nobody
        }
      };
      const result = main(event, new Context(settings, request), sendResponse);
      if (main.length < 3) return result;
      // A handler that takes the callback, and returns nothing, will call it.
      const orCalled = (value: unknown) => (value === undefined ? answered(response) : value);
      return isThenable(result) ? Promise.resolve(result).then(orCalled) : orCalled(result);
    },
  };
}
