import { dump } from "js-yaml";
import {
  encodeProtobuf,
  hasProtobuf,
  protobufMediaType,
  type TypedObject,
} from "../protobuf/protobuf.ts";
import { type HttpBody, type HttpRequest, HttpResponse } from "./message.ts";
import { ListText } from "./list-text.ts";
import { acceptedParts, yamlMediaType } from "./negotiation.ts";

const jsonType = "application/json";

/**
 * The response in protobuf or YAML, where the client prefers that and the answer has that form: in protobuf
 * objects of built-in kinds, their lists, metadata of any kind, and failures. Handlers need not know.
 */
export function inPreferredEncoding(request: HttpRequest, response: HttpResponse): HttpResponse {
  const preferred = preferredType(request);
  if (preferred === jsonType) return response;
  const { body, headers, status } = response;
  const isText = typeof body === "string" || body instanceof ListText;
  if (!isText || headers["content-type"] !== jsonType) return response;
  const object = JSON.parse(body.toString()) as TypedObject;
  const written = (content: HttpBody) =>
    new HttpResponse(content, { status, headers: { ...headers, "content-type": preferred } });
  if (preferred === yamlMediaType) return written(dump(object, yamlOptions));
  return hasProtobuf(object) ? written(encodeProtobuf(object)) : response;
}

const yamlOptions = { sortKeys: true, seqNoIndent: true, noRefs: true, lineWidth: -1 };

function preferredType(request: HttpRequest): string {
  for (const { mediaType } of acceptedParts(request)) {
    if ([protobufMediaType, yamlMediaType, jsonType].includes(mediaType)) return mediaType;
  }
  return jsonType;
}
