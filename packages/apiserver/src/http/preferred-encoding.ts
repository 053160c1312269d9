import { encodeList } from "../protobuf/list.ts";
import {
  encodeProtobuf,
  hasProtobuf,
  protobufMediaType,
  type TypedObject,
} from "../protobuf/protobuf.ts";
import { EncodingTurns } from "./encoding-turns.ts";
import { type HttpBody, type HttpRequest, type HttpResponse } from "./message.ts";
import { ListText } from "./list-text.ts";
import { acceptedParts, yamlMediaType } from "./negotiation.ts";
import { MadeBody } from "./made-body.ts";
import { PieceSource } from "./piece-source.ts";
import { TextSource } from "./text-source.ts";
import { dumpYaml } from "@spry/kube";
import { yamlOfList } from "./yaml-list.ts";
import { parseJson } from "../json.ts";

const jsonType = "application/json";

/**
 * The response in protobuf or YAML, where the client prefers that and the answer has that form: in protobuf
 * objects of built-in kinds, their lists, metadata of any kind, and failures. Handlers need not know. Lists are never there as a whole.
 * Large answers are encoded in turns; `owner`: whose turns they are.
 */
export async function inPreferredEncoding(
  request: HttpRequest,
  response: HttpResponse,
  owner: string,
): Promise<HttpResponse> {
  const preferred = preferredType(request);
  if (preferred === jsonType) return response;
  const { body, headers } = response;
  const turns = new EncodingTurns(owner);
  if (headers["content-type"] !== jsonType) return response;
  const written = (content: HttpBody) => response.with(content, preferred);
  if (body instanceof ListText) {
    const list = JSON.parse(body.head()) as TypedObject;
    if (preferred === yamlMediaType)
      return written(new MadeBody(new TextSource(yamlOfList(list, body.items))));
    if (!hasProtobuf(list)) return response;
    const { length, pieces } = await encodeList(list, body.items, turns, request.signal);
    return written(new MadeBody(new PieceSource(pieces), length));
  }
  if (typeof body !== "string") return response;
  await turns.before(body.length);
  const object = parseJson(body) as TypedObject;
  if (preferred === yamlMediaType) return written(dumpYaml(object, { isSorted: true }));
  return hasProtobuf(object) ? written(encodeProtobuf(object)) : response;
}

function preferredType(request: HttpRequest): string {
  for (const { mediaType } of acceptedParts(request)) {
    if ([protobufMediaType, yamlMediaType, jsonType].includes(mediaType)) return mediaType;
  }
  return jsonType;
}
