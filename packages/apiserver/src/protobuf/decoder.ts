import { badRequest } from "../errors.ts";
import { type Field, type Message, messageNamed } from "./messages.ts";
import { wire, WireReader } from "./wire-reader.ts";

type JsonObject = Record<string, unknown>;

/** As deep as bodies in JSON may be. */
const maxDepth = 256;
/** Two bytes of protobuf can stand for an object, which takes dozens in memory. */
const maxValues = 500_000;

const wireTypes: Partial<Record<Field["type"], number>> = {
  bool: wire.varint,
  int32: wire.varint,
  int64: wire.varint,
  double: wire.fixed64,
};

/** Reads messages into the objects that Go would write as JSON. One decoder reads one body. */
export class Decoder {
  #values = 0;

  /**
   * Adds to `target` what the reader holds. As in Go: unknown fields are skipped, a message that comes
   * twice is merged, and what JSON leaves out when it is empty is left out.
   */
  message(reader: WireReader, message: Message, target: JsonObject = {}, depth = 0): JsonObject {
    if (depth > maxDepth) throw badRequest(`the body is nested deeper than ${maxDepth} levels`);
    while (!reader.done) {
      const { number, wireType } = reader.tag();
      const field = message.byNumber.get(number);
      if (!field) reader.skip(wireType);
      else this.#field(reader, field, wireType, target, depth);
    }
    return target;
  }

  #field(
    reader: WireReader,
    field: Field,
    wireType: number,
    target: JsonObject,
    depth: number,
  ): void {
    const { name, label } = field;
    if (label === "list" && wireType === wire.delimited && field.type in wireTypes) {
      return this.#packed(reader.nested(), field, target, depth);
    }
    const wanted = label === "map" ? wire.delimited : wireTypeOf(field);
    if (wireType !== wanted) {
      throw badRequest(`the protobuf body has ${name ?? field.message} in wire type ${wireType}`);
    }
    if (name === undefined) {
      this.message(reader.nested(), messageNamed(field.message), target, depth + 1);
    } else if (label === "map") {
      this.#entry(reader.nested(), field, (target[name] ??= {}) as JsonObject, depth);
    } else if (label === "list") {
      this.#append(reader, field, target, depth);
    } else {
      const value = this.#value(reader, field, depth, target[name]);
      if (value === undefined || (isOmittable(field) && isZero(value))) delete target[name];
      else target[name] = value;
    }
  }

  #append(reader: WireReader, field: Field, target: JsonObject, depth: number): void {
    const list = (target[field.name ?? ""] ??= []) as unknown[];
    list.push(this.#value(reader, field, depth) ?? null);
  }

  /** Numbers of a list one after the other, which Go reads as well. */
  #packed(reader: WireReader, field: Field, target: JsonObject, depth: number): void {
    while (!reader.done) this.#append(reader, field, target, depth);
  }

  /** An entry of a map is a message of a key and a value, both of which may be left out. */
  #entry(reader: WireReader, field: Field, target: JsonObject, depth: number): void {
    let key = "";
    let value: unknown;
    while (!reader.done) {
      const { number, wireType } = reader.tag();
      if (number === 1 && wireType === wire.delimited) key = reader.text();
      else if (number === 2 && wireType === wireTypeOf(field)) {
        value = this.#value(reader, field, depth);
      } else reader.skip(wireType);
    }
    // One zero byte reads as any type's zero: an empty text, an empty message, 0.
    value ??= this.#value(new WireReader(Buffer.of(0)), field, depth) ?? null;
    // A plain assignment would take "__proto__" for more than a key.
    Object.defineProperty(target, key, {
      value,
      configurable: true,
      enumerable: true,
      writable: true,
    });
  }

  #value(reader: WireReader, field: Field, depth: number, previous?: unknown): unknown {
    if (++this.#values > maxValues) {
      throw badRequest(`the body has more than ${maxValues} values`);
    }
    switch (field.type) {
      case "string":
        return reader.text();
      case "bytes":
        return reader.bytes().toString("base64");
      case "bool":
        return reader.varint() !== 0;
      case "int32":
        return reader.varint() | 0;
      case "int64":
        return reader.int64();
      case "double":
        return finite(reader.double());
      case "message":
        return this.#nested(reader.nested(), field, depth + 1, previous);
    }
  }

  #nested(reader: WireReader, field: Field, depth: number, previous: unknown): unknown {
    const message = messageNamed(field.message);
    const { wellKnown } = field;
    if (wellKnown) return wellKnown.toJson(this.message(reader, message, {}, depth));
    return this.message(reader, message, previous as JsonObject | undefined, depth);
  }
}

function wireTypeOf(field: Field): number {
  return wireTypes[field.type] ?? wire.delimited;
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw badRequest(`the protobuf body holds ${value}, which JSON cannot represent`);
}

/** Go leaves zeros out of JSON, but never structs, whatever their form in JSON. */
function isOmittable({ label, type, tellsZero }: Field): boolean {
  return label === "always" && type !== "message" && !tellsZero;
}

function isZero(value: unknown): boolean {
  return value === "" || value === 0 || value === false;
}
