import { readCloudEvent } from "./cloud-event.ts";
import { type FunctionRequest } from "./function-request.ts";
import { type FunctionResponse } from "./function-response.ts";
import { contentTypeOf, type Publishing } from "./publisher.ts";
import { tracer } from "./tracer.ts";

/** The first argument of a handler. */
export type FunctionEvent = Record<string, unknown>;

/**
 * Makes a handler's event of a request whose body, if any, has been parsed. A plain object whose
 * functions need no `this`: Functions take it apart.
 */
export function createEvent(
  request: FunctionRequest,
  response: FunctionResponse,
  { emitCloudEvent, publishCloudEvent }: Publishing,
): FunctionEvent {
  const event: FunctionEvent = {
    extensions: { request, response },
    tracer,
    setResponseHeader: (name: string, value: string) => void response.set(name, value),
    setResponseContentType: (type: string) => void response.type(type),
    setResponseStatus: (status: number) => void response.status(status),
    emitCloudEvent,
    publishCloudEvent,
    buildResponseCloudEvent: (id: string, type: string, data: unknown) => ({
      type,
      source: event["ce-source"],
      eventtypeversion: event["ce-eventtypeversion"],
      specversion: event["ce-specversion"],
      id,
      data,
      datacontenttype: contentTypeOf(data),
    }),
  };
  const cloudEvent = readCloudEvent(request, request.body);
  const data = cloudEvent ? cloudEvent.data : request.body;
  if (data !== undefined) event["data"] = data;
  if (cloudEvent)
    for (const [name, value] of Object.entries(cloudEvent.attributes)) event[`ce-${name}`] = value;
  return event;
}
