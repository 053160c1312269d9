import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  type IncomingMessage,
  request as httpRequest,
  validateHeaderName,
  validateHeaderValue,
} from "node:http";
import { pipeline } from "node:stream/promises";
import { JsonText, stringifyJson } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { UserError } from "../user-error.ts";
import { startCommand } from "../shown-command.ts";

export interface InvokeOptions extends GlobalOptions {
  data?: string;
  method?: string;
  header?: string[];
  /** The same as the argument. */
  path?: string;
  include?: boolean;
  /** Type of a CloudEvent. */
  event?: string;
  source: string;
  timing?: boolean;
}

/** Prints the Function's answer; an answer of 400 or more makes the command fail. */
export async function invoke(
  name: string,
  given: string | undefined,
  options: InvokeOptions,
): Promise<void> {
  const { namespace, gateway } = await connect(options);
  if (!gateway) {
    throw new UserError(
      "the kubeconfig does not name a gateway through which Functions can be reached",
      `use the kubeconfig that \`${startCommand()}\` wrote, or kubectl port-forward to the Function's Service`,
    );
  }
  const data = options.data === undefined ? undefined : readBody(options.data);
  const { body, type } = options.event === undefined ? { body: data } : eventOf(options, data);
  const begin = performance.now();
  const response = await send(gateway, {
    method: options.method === undefined ? (body ? "POST" : "GET") : methodOf(options.method),
    path: pathOf(given ?? options.path ?? "/"),
    headers: {
      host: `${name}.${namespace}.localhost`,
      ...headersOf(options.header ?? [], body, type),
    },
    body,
  });
  const { statusCode = 0, statusMessage = "" } = response;
  if (options.include) {
    console.log(`HTTP/${response.httpVersion} ${statusCode} ${statusMessage}`);
    for (const [key, value] of Object.entries(response.headers))
      for (const each of [value].flat()) console.log(`${key}: ${each}`);
    console.log();
  }
  const firstMs = performance.now() - begin;
  await pipeline(response, process.stdout, { end: false });
  if (process.stdout.isTTY) process.stdout.write("\n");
  if (options.timing) printTiming(response, firstMs, performance.now() - begin);
  if (statusCode >= 400) {
    console.error(`HTTP ${statusCode} ${statusMessage}`);
    process.exitCode = 1;
  }
}

/** Any token is a method (RFC 9110). */
function methodOf(text: string): string {
  if (/^[-!#$%&'*+.^_`|~\w]+$/.test(text)) return text.toUpperCase();
  throw new UserError(
    `${text} is not a valid HTTP method`,
    "use GET, POST, PUT or DELETE, for example",
  );
}

/** What a browser sends: other characters encoded, no fragment. `?name=you` alone is a query of `/`. */
export function pathOf(text: string): string {
  const [path = "", query] =
    text
      .toWellFormed()
      .split("#")[0]
      ?.split(/\?(.*)/s) ?? [];
  const rooted = path.startsWith("/") ? path : `/${path}`;
  const encoded = rooted.replaceAll(/[^!-~]|["<>`{}^|\\]/gu, encodeURIComponent);
  if (query === undefined) return encoded;
  return `${encoded}?${query.replaceAll(/[^!-~]|["<>]/gu, encodeURIComponent).replaceAll("'", "%27")}`;
}

function readBody(data: string): Buffer {
  if (!data.startsWith("@")) return Buffer.from(data);
  const file = data.slice(1);
  try {
    return withoutMark(readFileSync(file === "-" ? 0 : file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      throw new UserError(
        `the file ${file} does not exist`,
        "@ names a file with the request body; write a text without it",
      );
    throw new UserError(`the request body cannot be read: ${(error as Error).message}`);
  }
}

/** A byte order mark is not part of a JSON text; other bodies are sent as they are. */
function withoutMark(body: Buffer): Buffer {
  const isMarked = body.subarray(0, 3).equals(Buffer.from("\uFEFF"));
  return isMarked && looksLikeJson(body.subarray(3)) ? body.subarray(3) : body;
}

/** In structured mode (CloudEvents 1.0, HTTP binding 3.2): data that is not JSON is bytes. */
function eventOf(
  { event, source }: InvokeOptions,
  data: Buffer | undefined,
): { body: Buffer; type: string } {
  const content =
    data === undefined
      ? {}
      : looksLikeJson(data)
        ? { datacontenttype: "application/json", data: new JsonText(data.toString().trim()) }
        : { data_base64: data.toString("base64") };
  const about = { id: randomUUID(), time: new Date().toISOString() };
  return {
    type: "application/cloudevents+json",
    body: Buffer.from(
      stringifyJson({ specversion: "1.0", type: event, source, ...about, ...content }),
    ),
  };
}

function printTiming({ headers }: IncomingMessage, firstMs: number, totalMs: number): void {
  const [, cold] = /coldstart;dur=([\d.]+)/.exec(String(headers["server-timing"] ?? "")) ?? [];
  const started = cold === undefined ? "" : `, of which an instance took ${cold} ms to start`;
  console.error(
    `response after ${firstMs.toFixed(1)} ms${started}; complete after ${totalMs.toFixed(1)} ms`,
  );
}

function headersOf(
  lines: string[],
  body: Buffer | undefined,
  type?: string,
): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1)
      throw new UserError(`${line} is not a valid header`, 'write it as "Name: value"');
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    checkHeader(name, value);
    const before = headers[name];
    headers[name] = before === undefined ? value : [before, value].flat();
  }
  if (body) {
    headers["content-type"] ??= type ?? typeOf(body);
    headers["content-length"] = String(body.length);
  }
  return headers;
}

function checkHeader(name: string, value: string): void {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw new UserError(
      `the header ${name} has characters that HTTP does not allow`,
      "use letters, digits and hyphens in its name, and encode others in its value",
    );
  }
}

function typeOf(body: Buffer): string {
  if (looksLikeJson(body)) return "application/json";
  return isUtf8(body) ? "text/plain" : "application/octet-stream";
}

function looksLikeJson(body: Buffer): boolean {
  if (!isUtf8(body)) return false;
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}

function send(
  gateway: URL,
  options: {
    method: string;
    path: string;
    headers: Record<string, string | string[]>;
    body: Buffer | undefined;
  },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options;
    const request = httpRequest(
      { host: gateway.hostname, port: gateway.port || 80, ...rest },
      resolve,
    );
    request.on("error", (error) => {
      reject(
        new UserError(
          `the gateway ${gateway.href} cannot be reached: ${error.message}`,
          `is the platform running? \`${startCommand()}\` starts it`,
        ),
      );
    });
    request.end(body);
  });
}
