import { StatusError } from "@spry/kube";
import { badRequest } from "../errors.ts";
import { Decoder } from "./decoder.ts";
import { Encoder } from "./encoder.ts";
import { messageOfKind } from "./messages.ts";
import { wire, WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

/**
 * The protobuf form of the built-in kinds, which programs made with client-go write and ask for:
 * "k8s" and a zero byte, then a `runtime.Unknown` with the type and the object's own message.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
 */
export const protobufMediaType = "application/vnd.kubernetes.protobuf";

/** What a watch in protobuf calls itself. */
export const protobufStreamType = `${protobufMediaType};stream=watch`;

export interface TypedObject {
  apiVersion: string;
  kind: string;
}

const magic = Buffer.from("k8s\0");
const lengthBytes = 4;

/** Numbers of the fields of `runtime.Unknown`, and of the type within. */
const envelope = { typeMeta: 1, raw: 2, contentEncoding: 3, contentType: 4 };
const typeMeta = { apiVersion: 1, kind: 2 };

/** Whether objects of the kind can be written in protobuf; those of custom resources cannot. */
export function hasProtobuf({ apiVersion, kind }: TypedObject): boolean {
  return messageOfKind(apiVersion, kind) !== undefined;
}

/**
 * The object in the body, as if it had come in JSON. Throws a `StatusError`: 400 when the body cannot
 * be read, 415 when its kind has no protobuf form.
 */
export function decodeProtobuf(body: Uint8Array): TypedObject & Record<string, unknown> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!bytes.subarray(0, magic.length).equals(magic)) {
    throw badRequest("the body does not begin as a Kubernetes object in protobuf does");
  }
  const fields = delimitedFields(new WireReader(bytes, magic.length));
  const type = delimitedFields(new WireReader(fields.get(envelope.typeMeta) ?? Buffer.alloc(0)));
  const apiVersion = type.get(typeMeta.apiVersion)?.toString() ?? "";
  const kind = type.get(typeMeta.kind)?.toString() ?? "";
  if (!apiVersion || !kind)
    throw badRequest("the protobuf body does not say its apiVersion and kind");
  if (fields.get(envelope.contentEncoding)?.length) {
    throw badRequest("the protobuf body has a content encoding, and none is known here");
  }
  const message = messageOfKind(apiVersion, kind);
  if (!message) {
    const named = `${kind} in version ${JSON.stringify(apiVersion)}`.slice(0, 300);
    throw new StatusError({
      code: 415,
      message: `${named} cannot be read as protobuf by this server: send JSON`,
    });
  }
  const reader = new WireReader(fields.get(envelope.raw) ?? Buffer.alloc(0));
  return { apiVersion, kind, ...new Decoder().message(reader, message) };
}

function delimitedFields(reader: WireReader): Map<number, Buffer> {
  const fields = new Map<number, Buffer>();
  while (!reader.done) {
    const { number, wireType } = reader.tag();
    if (wireType === wire.delimited) fields.set(number, reader.bytes());
    else reader.skip(wireType);
  }
  return fields;
}

/** The object in protobuf. Its kind must be one that `hasProtobuf`. */
export function encodeProtobuf(object: TypedObject): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writeObject(writer, object);
  return writer.finish();
}

/** One event of a watch: its length in four bytes, then a `WatchEvent` with the object as it is alone. */
export function encodeWatchEvent(type: string, object: TypedObject): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  const rawExtension = { object: 2, raw: 1 };
  writer.delimited(() => {
    writer.delimited(() => writeObject(writer, object));
    writer.tag(rawExtension.raw, wire.delimited);
  });
  writer.tag(rawExtension.object, wire.delimited);
  writer.text(type);
  writer.tag(1, wire.delimited);
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(writer.length);
  writer.bytes(length);
  return writer.finish();
}

function writeObject(writer: WireWriter, object: TypedObject): void {
  const { apiVersion, kind } = object;
  const message = messageOfKind(apiVersion, kind);
  if (!message) throw new Error(`${apiVersion} ${kind} has no protobuf form`);
  writeEnvelope(writer, object, () =>
    writer.delimited(() => new Encoder(writer).message(message, object as never)),
  );
}

/** What stands around an object's message, which `content` writes with its length before it. */
export function writeEnvelope(
  writer: WireWriter,
  { apiVersion, kind }: TypedObject,
  content: () => void,
): void {
  for (const number of [envelope.contentType, envelope.contentEncoding]) {
    writer.text("");
    writer.tag(number, wire.delimited);
  }
  content();
  writer.tag(envelope.raw, wire.delimited);
  writer.delimited(() => {
    writer.text(kind);
    writer.tag(typeMeta.kind, wire.delimited);
    writer.text(apiVersion);
    writer.tag(typeMeta.apiVersion, wire.delimited);
  });
  writer.tag(envelope.typeMeta, wire.delimited);
  writer.bytes(magic);
}
