import { type Field, type Message, messageNamed, type ScalarType } from "./messages.ts";
import { wire } from "./wire-reader.ts";
import { type WireWriter } from "./wire-writer.ts";

type JsonObject = Record<string, unknown>;

/** Writes objects as Go does: fields by number, keys of maps sorted, zeros where it has no pointer. */
export class Encoder {
  readonly #writer: WireWriter;

  constructor(writer: WireWriter) {
    this.#writer = writer;
  }

  /** Fields that the message does not have are left out; a value of a wrong type is an error. */
  message(message: Message, object: JsonObject): void {
    for (const field of message.fields) {
      const value = field.name === undefined ? object : object[field.name];
      switch (field.label) {
        case "list":
          this.#list(message, field, value);
          break;
        case "map":
          this.#map(message, field, value);
          break;
        case "pointer":
          if (value != null) this.#field(message, field, value);
          break;
        case "always":
          if (value != null || field.type !== "bytes") this.#field(message, field, value);
      }
    }
  }

  #list(message: Message, field: Field, value: unknown): void {
    if (value == null) return;
    if (!Array.isArray(value)) throw mismatch(message, field, value);
    for (let index = value.length - 1; index >= 0; index--) {
      this.#field(message, field, value[index]);
    }
  }

  #map(message: Message, field: Field, value: unknown): void {
    if (value == null) return;
    if (!isObject(value)) throw mismatch(message, field, value);
    for (const key of Object.keys(value).sort().reverse()) {
      this.#writer.delimited(() => {
        this.#field(message, field, value[key], 2);
        this.#writer.text(key);
        this.#writer.tag(1, wire.delimited);
      });
      this.#writer.tag(field.number, wire.delimited);
    }
  }

  #field(message: Message, field: Field, value: unknown, number = field.number): void {
    if (field.type === "message") {
      this.#writer.delimited(() => this.#nested(message, field, value ?? undefined));
      this.#writer.tag(number, wire.delimited);
    } else {
      const known = value ?? zeros[field.type];
      if (!fits(known, field.type)) throw mismatch(message, field, value);
      this.#writer.tag(number, this.#scalar(field.type, known));
    }
  }

  /** Writes the value; returns how it is written. */
  #scalar(type: ScalarType, value: unknown): number {
    switch (type) {
      case "string":
        this.#writer.text(value as string);
        return wire.delimited;
      case "bytes":
        this.#writer.delimited(() => this.#writer.bytes(Buffer.from(value as string, "base64")));
        return wire.delimited;
      case "bool":
        this.#writer.varint(value === true ? 1 : 0);
        return wire.varint;
      case "int32":
      case "int64":
        this.#writer.varint(typeof value === "bigint" ? value : Math.trunc(value as number));
        return wire.varint;
      case "double":
        this.#writer.double(Number(value));
        return wire.fixed64;
    }
  }

  #nested(owner: Message, field: Field, value: unknown): void {
    const fields = field.wellKnown ? field.wellKnown.fromJson(value) : (value ?? {});
    if (fields === undefined) return;
    if (!isObject(fields)) throw mismatch(owner, field, value);
    this.message(messageNamed(field.message), fields);
  }
}

const zeros = { string: "", bytes: "", bool: false, int32: 0, int64: 0, double: 0 };

function fits(value: unknown, type: keyof typeof zeros): boolean {
  if (typeof value === "bigint") return type === "int64" || type === "double";
  return typeof value === typeof zeros[type];
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function mismatch(message: Message, field: Field, value: unknown): Error {
  const found = Array.isArray(value) ? "array" : typeof value;
  const wanted = field.type === "message" ? field.message : field.type;
  return new TypeError(
    `writing ${message.name} in protobuf: ${field.name ?? field.message} is of type ${found}, not ${field.label} ${wanted}`,
  );
}
