/** CloudEvents at a desk: one that is sent to the Function, and a place for those that it publishes. */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import path from "node:path";
import { type FunctionSchedule } from "@spry/function";
import { JsonText, membersOf, stringifyJson } from "@spry/kube";
import { printable } from "../printable.ts";
import { UserError } from "../user-error.ts";

/** The file whose event the key `e` sends. */
export const eventFile = "event.json";
const maxBytes = 1024 * 1024;

/** The event of `event.json`, or an example, in the JSON format; always with an id and a time of its own. */
export function exampleEvent(root: string): string {
  const file = path.join(root, eventFile);
  let given: object = {
    type: "example.event.v1",
    source: "spry-dev",
    datacontenttype: "application/json",
    data: { hello: "world" },
  };
  if (existsSync(file)) {
    try {
      given = membersIn(readFileSync(file, "utf8"));
    } catch (error) {
      throw new UserError(`${eventFile} is not valid JSON: ${(error as Error).message}`);
    }
  }
  const own = { id: randomUUID(), time: new Date().toISOString() };
  return stringifyJson({ specversion: "1.0", ...given, ...own });
}

/**
 * Calls the Function as a schedule does (docs/events.md): a POST with its payload and two headers. Returns the response's status.
 * Without a schedule: as one without a payload.
 */
export async function callOnSchedule(url: string, schedule?: FunctionSchedule): Promise<number> {
  const { name = "dev", path: place = "/", payload = "", contentType } = schedule ?? {};
  const response = await fetch(new URL(place, url), {
    method: "POST",
    headers: {
      ...(payload !== "" && { "content-type": contentType ?? "application/json" }),
      "x-schedule-name": name,
      "x-schedule-time": new Date().toISOString(),
    },
    ...(payload !== "" && { body: payload }),
  });
  await response.body?.cancel();
  return response.status;
}

/** Sends an event, in structured mode, to an address; returns the response's status. */
export async function emit(url: string, event: string): Promise<number> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json" },
    body: event,
  });
  await response.body?.cancel();
  return response.status;
}

/** Their values as they are written; a byte order mark is not part of a JSON text. */
function membersIn(file: string): Record<string, JsonText> {
  const text = file.replace(/^\uFEFF/, "");
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error("it must be an object");
  const members = membersOf(text);
  return Object.fromEntries(
    members.map(({ name, start, end }) => [name, new JsonText(text.slice(start, end))]),
  );
}

/**
 * Listens where `PUBLISHER_PROXY_ADDRESS` points; `onEvent` gets one line about each event. The address has a part that pages in
 * the user's browser cannot guess.
 */
export async function startCollector(
  onEvent: (line: string) => void,
): Promise<{ url: string; close(): void }> {
  const place = `/${randomUUID()}/publish`;
  const server = createServer((request, response) => {
    if (request.url === place) return void collect(request, response, onEvent);
    request.resume();
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}${place}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function collect(
  request: IncomingMessage,
  response: ServerResponse,
  onEvent: (line: string) => void,
): Promise<void> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) return void response.writeHead(413).end();
      chunks.push(chunk);
    }
  } catch {
    return;
  }
  const text = Buffer.concat(chunks).toString();
  const isStructured = /cloudevents\+json/.test(request.headers["content-type"] ?? "");
  const event = isStructured ? parsed(text) : undefined;
  const type = event?.["type"] ?? request.headers["ce-type"] ?? "event";
  const source = event?.["source"] ?? request.headers["ce-source"] ?? "";
  const data = event ? JSON.stringify(event["data"] ?? event["data_base64"] ?? null) : text;
  const [shownType, shownSource] = [type, source].map((each) => String(each).slice(0, 200));
  onEvent(printable(`published ${shownType} from ${shownSource}: ${data.slice(0, 200)}`));
  response.writeHead(204).end();
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
