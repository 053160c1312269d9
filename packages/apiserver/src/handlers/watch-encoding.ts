import { encodeWatchEvent, protobufStreamType, type TypedObject } from "../protobuf/protobuf.ts";
import { parseJson } from "../json.ts";

/** How the events of a watch are written one after the other. */
export interface WatchEncoding {
  contentType: string;
  /** `object` is JSON text. */
  event(type: string, object: string): Uint8Array;
}

const encoder = new TextEncoder();

/** A line of JSON each. */
export const jsonEvents: WatchEncoding = {
  contentType: "application/json",
  event: (type, object) => encoder.encode(`{"type":"${type}","object":${object}}\n`),
};

/** A message of protobuf each, with its length before it. */
export const protobufEvents: WatchEncoding = {
  contentType: protobufStreamType,
  event: (type, object) => encodeWatchEvent(type, parseJson(object) as TypedObject),
};
