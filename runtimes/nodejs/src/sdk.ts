import { readCloudEvent } from "./cloud-event.ts";
import { type FunctionRequest } from "./function-request.ts";
import { type Publisher, publishingWith } from "./publisher.ts";
import { type Settings } from "./settings.ts";
import { tracer } from "./tracer.ts";

/** What `require("sdk")` gives a Function: the parts of event and context that its request lacks. */
export function createSdk(settings: Settings, publisher: Publisher) {
  return {
    getTracer: () => tracer,
    getCloudEvent,
    emitCloudEvent: publishingWith(publisher).emitCloudEvent,
    getFunctionName: () => settings.functionName,
    getNamespace: () => settings.namespace,
    getRuntime: () => settings.runtime,
    getTimeout: () => settings.timeoutSeconds,
    getBodySizeLimit: () => settings.bodyLimitMb,
  };
}

export type Sdk = ReturnType<typeof createSdk>;

/** The request's event, attributes and `data` side by side; null when it is none, or malformed. */
function getCloudEvent(request: FunctionRequest): Record<string, unknown> | null {
  try {
    const event = readCloudEvent(request, request.body);
    return event ? { ...event.attributes, data: event.data } : null;
  } catch {
    return null;
  }
}
