import { StatusError } from "@spry/kube";
import { load, JSON_SCHEMA } from "js-yaml";
import { badRequest } from "../errors.ts";
import { mediaTypeOf } from "./negotiation.ts";
import { decodeProtobuf, protobufMediaType } from "../protobuf/protobuf.ts";

/** As etcd-backed API servers: 3 MiB of body. */
export const maxBodyBytes = 3 * 1024 * 1024;
const maxDepth = 256;
/** YAML aliases can say in a line what takes gigabytes to write down. */
const maxNodes = 500_000;

/** The body as text; throws a `StatusError` 413 when it is too long. */
export async function readText(request: Request): Promise<string> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBodyBytes) throw tooLarge();
  const text = await request.text();
  if (text.length > maxBodyBytes) throw tooLarge();
  return text;
}

/** The object in the body, whatever its media type; undefined when there is no body. */
export async function readObject(request: Request): Promise<Record<string, unknown> | undefined> {
  const mediaType = mediaTypeOf(request);
  if (mediaType === protobufMediaType) {
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (bytes.length > maxBodyBytes) throw tooLarge();
    if (bytes.length === 0) return undefined;
    return decodeProtobuf(bytes);
  }
  if (!bodyTypes.includes(mediaType)) {
    throw new StatusError({
      code: 415,
      message: `the body of the request was in an unknown format - accepted media types include: ${bodyTypes.join(", ")}, ${protobufMediaType}`,
    });
  }
  const text = await readText(request);
  return text === "" ? undefined : parseObject(text, mediaType);
}

const bodyTypes = ["application/json", "application/yaml"];

/** A JSON or YAML document; a `StatusError` 400 says why it cannot be read. */
export function parseDocument(text: string, mediaType: string): unknown {
  const yaml = mediaType.endsWith("yaml");
  let value: unknown;
  try {
    value = yaml && !text.trimStart().startsWith("{") ? loadYaml(text) : JSON.parse(text);
  } catch (cause) {
    const problem = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : String(cause);
    throw badRequest(`the body cannot be read as ${yaml ? "YAML" : "JSON"}: ${problem}`, { cause });
  }
  checkShape(value);
  return value;
}

/** The same, for bodies that must be an object. */
export function parseObject(text: string, mediaType: string): Record<string, unknown> {
  const value = parseDocument(text, mediaType);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw badRequest("the body must be an object");
  }
  return value as Record<string, unknown>;
}

function loadYaml(text: string): unknown {
  return load(text, { schema: JSON_SCHEMA });
}

function checkShape(root: unknown): void {
  let nodes = 0;
  const visit = (value: unknown, depth: number): void => {
    if (typeof value !== "object" || value === null) return;
    if (depth > maxDepth) throw badRequest(`the body is nested deeper than ${maxDepth} levels`);
    if (++nodes > maxNodes) throw badRequest(`the body has more than ${maxNodes} values`);
    if (Array.isArray(value)) for (const item of value) visit(item, depth + 1);
    else {
      for (const key of Object.keys(value)) {
        // Assigning to it would change an object's prototype, not its data.
        if (key === "__proto__") throw badRequest('the body has a field named "__proto__"');
        visit((value as Record<string, unknown>)[key], depth + 1);
      }
    }
  };
  visit(root, 0);
}

function tooLarge(): StatusError {
  return new StatusError({
    code: 413,
    message: `Request entity too large: limit is ${maxBodyBytes}`,
  });
}
