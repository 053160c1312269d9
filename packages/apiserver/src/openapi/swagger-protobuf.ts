import { wire } from "../protobuf/wire-reader.ts";
import { WireWriter } from "../protobuf/wire-writer.ts";

/**
 * OpenAPI v2 as gnostic's `openapi.v2.Document` (gnostic-models, openapiv2/OpenAPIv2.proto), the only form in which
 * client-go reads it. As much of it as `documents.ts` writes; what has no field there is left out.
 */
export const swaggerProtobufType = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/** By which clients ask for it: the second is what they said before it turned out to be no media type. */
export const swaggerProtobufTypes = [
  swaggerProtobufType,
  "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

type JsonObject = Record<string, unknown>;

interface Form {
  wireType: number;
  write(writer: WireWriter, value: unknown): void;
}

interface Field {
  number: number;
  form: () => Form;
  repeated?: boolean;
}

const text = delimited((writer, value) => writer.bytes(Buffer.from(String(value))));
const bool: Form = {
  wireType: wire.varint,
  write: (writer, value) => writer.varint(value ? 1 : 0),
};
const integer: Form = {
  wireType: wire.varint,
  write: (writer, value) => writer.varint(Number(value)),
};
const double: Form = {
  wireType: wire.fixed64,
  write: (writer, value) => writer.double(Number(value)),
};
/** `Any` holds YAML, of which JSON is a part. */
const any = within(
  2,
  delimited((writer, value) => writer.bytes(Buffer.from(JSON.stringify(value)))),
);

const schema: Form = message(
  {
    $ref: one(1, text),
    format: one(2, text),
    title: one(3, text),
    description: one(4, text),
    default: one(5, any),
    multipleOf: one(6, double),
    maximum: one(7, double),
    exclusiveMaximum: one(8, bool),
    minimum: one(9, double),
    exclusiveMinimum: one(10, bool),
    maxLength: one(11, integer),
    minLength: one(12, integer),
    pattern: one(13, text),
    maxItems: one(14, integer),
    minItems: one(15, integer),
    uniqueItems: one(16, bool),
    maxProperties: one(17, integer),
    minProperties: one(18, integer),
    required: many(19, text),
    enum: many(20, any),
    additionalProperties: { number: 21, form: () => schemaOrBoolean },
    type: one(22, within(1, text)),
    items: { number: 23, form: () => within(1, schema) },
    allOf: { number: 24, form: () => schema, repeated: true },
    properties: { number: 25, form: () => named(1, schema) },
  },
  31,
);
const schemaOrBoolean = delimited((writer, value) => {
  const [number, form] = typeof value === "boolean" ? [2, bool] : [1, schema];
  writeField(writer, number, form, value);
});

const queryParameter = message(
  { in: one(2, text), name: one(4, text), type: one(6, text), uniqueItems: one(20, bool) },
  23,
);
const response = message({ description: one(1, text) }, 5);
const operation = message(
  {
    consumes: many(7, text),
    // ParametersItem, Parameter, NonBodyParameter: each is a choice of one field.
    parameters: many(8, within(1, within(2, within(3, queryParameter)))),
    responses: one(9, named(1, within(1, response))),
  },
  13,
);
const pathItem = message(
  {
    get: one(2, operation),
    put: one(3, operation),
    post: one(4, operation),
    delete: one(5, operation),
    patch: one(7, operation),
  },
  10,
);
const swagger = {
  swagger: one(1, text),
  info: one(2, message({ title: one(1, text), version: one(2, text) }, 7)),
  paths: one(8, named(2, pathItem)),
  definitions: one(9, named(1, schema)),
};

/** The bytes of a Swagger 2.0 document. */
export function encodeSwagger(document: object): Buffer<ArrayBuffer> {
  const writer = new WireWriter();
  writeFields(writer, swagger, document as JsonObject);
  return writer.finish();
}

function one(number: number, form: Form): Field {
  return { number, form: () => form };
}

function many(number: number, form: Form): Field {
  return { number, form: () => form, repeated: true };
}

/** An object; its `x-` fields are entries of the field `extensions`. */
function message(fields: Record<string, Field>, extensions: number): Form {
  return delimited((writer, value) => {
    const object = value as JsonObject;
    const others = Object.entries(object).filter(([key]) => key.startsWith("x-"));
    for (const entry of others.reverse()) writeEntry(writer, extensions, any, entry);
    writeFields(writer, fields, object);
  });
}

/** An object whose keys are names: a message whose field `number` holds entries of name and value. */
function named(number: number, form: Form): Form {
  return delimited((writer, value) => {
    for (const entry of Object.entries(value as JsonObject).reverse()) {
      writeEntry(writer, number, form, entry);
    }
  });
}

/** A message that has but the field `number`. */
function within(number: number, form: Form): Form {
  return delimited((writer, value) => writeField(writer, number, form, value));
}

function delimited(write: Form["write"]): Form {
  return {
    wireType: wire.delimited,
    write: (writer, value) => writer.delimited(() => write(writer, value)),
  };
}

function writeFields(writer: WireWriter, fields: Record<string, Field>, object: JsonObject): void {
  for (const [name, field] of Object.entries(fields).reverse()) {
    const value = object[name];
    if (value === undefined) continue;
    const values = field.repeated ? (value as unknown[]).toReversed() : [value];
    for (const each of values) writeField(writer, field.number, field.form(), each);
  }
}

function writeEntry(
  writer: WireWriter,
  number: number,
  form: Form,
  [name, value]: [string, unknown],
): void {
  writer.delimited(() => {
    writeField(writer, 2, form, value);
    writeField(writer, 1, text, name);
  });
  writer.tag(number, wire.delimited);
}

function writeField(writer: WireWriter, number: number, form: Form, value: unknown): void {
  form.write(writer, value);
  writer.tag(number, form.wireType);
}
