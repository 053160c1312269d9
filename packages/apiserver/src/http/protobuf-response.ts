import {
  encodeProtobuf,
  hasProtobuf,
  protobufMediaType,
  type TypedObject,
} from "../protobuf/protobuf.ts";
import { type HttpRequest, HttpResponse } from "./message.ts";
import { acceptedParts } from "./negotiation.ts";

const jsonType = "application/json";

/**
 * The response in protobuf, where the client prefers it and the answer has that form: objects of
 * built-in kinds, their lists, metadata of any kind, and failures. Handlers need not know.
 */
export function inPreferredEncoding(request: HttpRequest, response: HttpResponse): HttpResponse {
  if (!prefersProtobuf(request)) return response;
  const { body, headers, status } = response;
  if (typeof body !== "string" || headers["content-type"] !== jsonType) return response;
  const object = JSON.parse(body) as TypedObject;
  if (!hasProtobuf(object)) return response;
  return new HttpResponse(encodeProtobuf(object), {
    status,
    headers: { ...headers, "content-type": protobufMediaType },
  });
}

function prefersProtobuf(request: HttpRequest): boolean {
  for (const { mediaType } of acceptedParts(request)) {
    if (mediaType === protobufMediaType) return true;
    if (mediaType === jsonType) return false;
  }
  return false;
}
