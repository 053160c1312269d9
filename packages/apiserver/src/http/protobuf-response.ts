import {
  encodeProtobuf,
  hasProtobuf,
  protobufMediaType,
  type TypedObject,
} from "../protobuf/protobuf.ts";
import { acceptedParts } from "./negotiation.ts";
import { isStream } from "./responses.ts";

const jsonType = "application/json";

/**
 * The response in protobuf, where the client prefers it and the answer has that form: objects of
 * built-in kinds, their lists, metadata of any kind, and failures. Handlers need not know.
 */
export async function inPreferredEncoding(request: Request, response: Response): Promise<Response> {
  if (!prefersProtobuf(request)) return response;
  if (isStream(response) || response.headers.get("content-type") !== jsonType) return response;
  const text = await response.text();
  const object = JSON.parse(text) as TypedObject;
  const { status } = response;
  const headers = new Headers(response.headers);
  if (!hasProtobuf(object)) return new Response(text, { status, headers });
  headers.set("content-type", protobufMediaType);
  return new Response(encodeProtobuf(object), { status, headers });
}

function prefersProtobuf(request: Request): boolean {
  for (const { mediaType } of acceptedParts(request)) {
    if (mediaType === protobufMediaType) return true;
    if (mediaType === jsonType) return false;
  }
  return false;
}
