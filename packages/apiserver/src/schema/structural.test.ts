import { describe, expect, test } from "vitest";
import { FieldErrors } from "../field-errors.ts";
import { type Schema } from "./schema.ts";
import { applyDefaults, prune } from "./structural.ts";
import { validateValue } from "./validate.ts";

const problems = (value: unknown, schema: Schema) => {
  const errors = new FieldErrors();
  validateValue({ x: value }, { type: "object", properties: { x: schema } }, errors);
  return errors.all.map(({ field, message }) => `${field}: ${message}`);
};

describe("validation speaks like the API server", () => {
  test.each<[string, unknown, Schema, string[]]>([
    [
      "type",
      "a",
      { type: "integer" },
      ['x: Invalid value: "string": x in body must be of type integer: "string"'],
    ],
    [
      "fraction",
      1.5,
      { type: "integer" },
      [
        'x: Invalid value: "number": x in body must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in x',
      ],
    ],
    [
      "null",
      null,
      { type: "string" },
      ['x: Invalid value: "null": x in body must be of type string: "null"'],
    ],
    ["nullable", null, { type: "string", nullable: true }, []],
    ["int or string", "5", { "x-kubernetes-int-or-string": true }, []],
    [
      "int or string",
      true,
      { "x-kubernetes-int-or-string": true },
      ['x: Invalid value: "boolean": x in body must be of type integer,string: "boolean"'],
    ],
    [
      "enum",
      "c",
      { type: "string", enum: ["a", "b"] },
      ['x: Unsupported value: "c": supported values: "a", "b"'],
    ],
    [
      "minimum",
      0,
      { type: "integer", minimum: 1 },
      ["x: Invalid value: 0: x in body should be greater than or equal to 1"],
    ],
    [
      "maximum",
      2,
      { type: "integer", maximum: 2, exclusiveMaximum: true },
      ["x: Invalid value: 2: x in body should be less than 2"],
    ],
    [
      "pattern",
      "A",
      { type: "string", pattern: "^[a-z]+$" },
      ["x: Invalid value: \"A\": x in body should match '^[a-z]+$'"],
    ],
    [
      "length",
      "abc",
      { type: "string", maxLength: 2 },
      ["x: Too long: may not be more than 2 bytes"],
    ],
    [
      "min length",
      "",
      { type: "string", minLength: 1 },
      ['x: Invalid value: "": x in body should be at least 1 chars long'],
    ],
    [
      "items",
      [1, 2, 3],
      { type: "array", maxItems: 2, items: { type: "integer" } },
      ["x: Too many: 3: must have at most 2 items"],
    ],
    [
      "item",
      [1, "b"],
      { type: "array", items: { type: "integer" } },
      ['x[1]: Invalid value: "string": x[1] in body must be of type integer: "string"'],
    ],
    [
      "set",
      ["a", "a"],
      { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
      ['x[1]: Duplicate value: "a"'],
    ],
    ["required", {}, { type: "object", required: ["y"] }, ["x.y: Required value"]],
    [
      "entries",
      { k: 1 },
      { type: "object", additionalProperties: { type: "string" } },
      ['x.k: Invalid value: "integer": x.k in body must be of type string: "integer"'],
    ],
    [
      "any of",
      "a",
      { anyOf: [{ type: "integer" }, { enum: ["b"] }] },
      [
        '<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)',
        'x: Invalid value: "string": x in body must be of type integer: "string"',
      ],
    ],
    [
      "one of",
      1,
      { oneOf: [{ type: "integer" }, { type: "number" }] },
      [
        '<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
      ],
    ],
    [
      "not",
      1,
      { not: { type: "integer" } },
      ['<nil>: Invalid value: "": "x" must not validate the schema (not)'],
    ],
    [
      "time",
      "yesterday",
      { type: "string", format: "date-time" },
      ['x: Invalid value: "yesterday": x in body must be of type date-time: "yesterday"'],
    ],
  ])("%s of %j", (_, value, schema, expected) => {
    expect(problems(value, schema)).toEqual(expected);
  });
});

describe("defaults", () => {
  const schema: Schema = {
    type: "object",
    properties: {
      a: { type: "string", default: "x" },
      deep: { type: "object", default: {}, properties: { n: { type: "integer", default: 1 } } },
      list: {
        type: "array",
        items: { type: "object", properties: { k: { type: "string", default: "y" } } },
      },
      open: { type: "string", nullable: true, default: "z" },
    },
  };
  test.each([
    [{}, { a: "x", deep: { n: 1 }, open: "z" }],
    [
      { a: null, open: null, deep: { n: 2 } },
      { a: "x", open: null, deep: { n: 2 } },
    ],
    [
      { a: "1", list: [{}, { k: "v" }], open: "o" },
      { a: "1", list: [{ k: "y" }, { k: "v" }], deep: { n: 1 }, open: "o" },
    ],
  ])("of %j", (value, expected) => {
    applyDefaults(value, schema);
    expect(value).toEqual(expected);
  });
});

test("unknown fields are pruned, except where they are preserved", () => {
  const schema: Schema = {
    type: "object",
    properties: {
      known: { type: "object", properties: { a: { type: "string" } } },
      free: {
        type: "object",
        "x-kubernetes-preserve-unknown-fields": true,
        properties: { strict: { type: "object" } },
      },
      map: {
        type: "object",
        additionalProperties: { type: "object", properties: { a: { type: "string" } } },
      },
    },
  };
  const value = {
    apiVersion: "v1",
    kind: "K",
    metadata: { name: "n" },
    known: { a: "1", b: "2" },
    free: { any: { thing: 1 }, strict: { gone: 1 } },
    map: { k: { a: "1", z: 2 } },
    other: 1,
  };
  expect(prune(value, schema)).toEqual(["known.b", "free.strict.gone", "map.k.z", "other"]);
  expect(value).toMatchObject({
    free: { any: { thing: 1 }, strict: {} },
    map: { k: { a: "1" } },
    metadata: { name: "n" },
  });
});
