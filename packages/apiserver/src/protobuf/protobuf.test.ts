import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { StatusError } from "@spry/kube";
import { describe, expect, test } from "vitest";
import {
  decodeProtobuf,
  encodeProtobuf,
  encodeWatchEvent,
  hasProtobuf,
  type TypedObject,
} from "./protobuf.ts";

interface Sample {
  name: string;
  object: TypedObject;
  protobuf: string;
}

// What the Go types of Kubernetes write, by tools/generate-kube-protobuf.
const file = new URL("testdata/golden.json.gz", import.meta.url);
const samples = gunzipSync(readFileSync(file))
  .toString()
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Sample);
const objects = samples.filter(({ name }) => name !== "watch frame");
const full = objects.filter(({ name }) => name.endsWith("every field set"));

describe("as Go does it", () => {
  test.each(objects)("$name is written", ({ object, protobuf }) => {
    expect(base64(encodeProtobuf(object))).toBe(protobuf);
  });

  test.each(objects)("$name is read", ({ object, protobuf }) => {
    expect(decodeProtobuf(Buffer.from(protobuf, "base64"))).toEqual(withoutNulls(object));
  });

  test("an event of a watch is framed", () => {
    const { object, protobuf } = samples.find(({ name }) => name === "watch frame") as Sample;
    const event = object as unknown as { type: string; object: TypedObject };
    expect(base64(encodeWatchEvent(event.type, event.object))).toBe(protobuf);
  });
});

test("objects of any content are read as they were written", () => {
  const random = randomNumbers(7);
  for (const { object } of full) {
    const bytes = encodeProtobuf(thinned(object, random) as TypedObject);
    expect(base64(encodeProtobuf(decodeProtobuf(bytes)))).toBe(base64(bytes));
  }
});

test("kinds of custom resources have no protobuf form", () => {
  const object = { apiVersion: "serverless.kyma-project.io/v1alpha2", kind: "Function" };
  expect(hasProtobuf(object)).toBe(false);
  expect(hasProtobuf({ apiVersion: "v1", kind: "__proto__" })).toBe(false);
  const body = bodyOf(text(1, object.apiVersion) + text(2, object.kind), "");
  expect(failure(body)).toMatchObject({ code: 415 });
});

test("options of any group are known", () => {
  const body = bodyOf(text(1, "apps/v1") + text(2, "DeleteOptions"), "0800");
  expect(decodeProtobuf(body)).toEqual({
    apiVersion: "apps/v1",
    kind: "DeleteOptions",
    gracePeriodSeconds: 0,
  });
});

describe("an unexpected body", () => {
  const configMap = text(1, "v1") + text(2, "ConfigMap");
  const named = message(1, text(1, "settings"));
  const settings = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" } };

  test.each([
    ["unknown fields of every wire type", "a00601a9060102030405060708a2060178ad0601020304"],
    ["an unknown group", "a306a80605ab06ac06a406"],
    ["a message that comes twice", message(1, text(3, ""))],
  ])("with %s is read without", (_, extra) => {
    expect(decodeProtobuf(bodyOf(configMap, named + extra))).toEqual(settings);
  });

  test("with packed numbers is read as Go reads them", () => {
    const groups = message(2, message(14, message(4, "01ffffffffffffffffff01")));
    const pod = decodeProtobuf(bodyOf(text(1, "v1") + text(2, "Pod"), groups));
    expect(pod.spec).toEqual({ securityContext: { supplementalGroups: [1, -1] } });
  });

  test("cannot reach prototypes", () => {
    const entry = message(2, text(1, "__proto__") + text(2, "polluted"));
    const { data } = decodeProtobuf(bodyOf(configMap, entry));
    expect(Object.keys(data as object)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
  });

  test.each([
    ["that is JSON", Buffer.from('{"kind":"ConfigMap"}'), "does not begin"],
    ["without a kind", bodyOf("", named), "does not say its apiVersion and kind"],
    ["that is cut off", bodyOf(configMap, "0a05"), "is cut off"],
    ["with a length below zero", bodyOf(configMap, "0affffffffffffffffff01"), "is cut off"],
    ["with an endless number", bodyOf(configMap, "ffffffffffffffffffffff"), "does not end"],
    ["with field 0", bodyOf(configMap, "0000"), "illegal tag"],
    ["with a group left open", bodyOf(configMap, "a306"), "does not end"],
    ["with another wire type", bodyOf(configMap, "0801"), "metadata in wire type 0"],
    [
      "with raw JSON that is none",
      bodyOf(text(1, "apps/v1") + text(2, "ControllerRevision"), message(2, text(1, "{"))),
      "not JSON",
    ],
    [
      "with a time beyond all calendars",
      bodyOf(configMap, message(1, message(8, "08ffffffffffffffff7f"))),
      "time out of range",
    ],
    ["with too many values", bodyOf(configMap, "1200".repeat(600_000)), "more than 500000 values"],
    ["nested too deep", deepDefinition(300), "nested deeper than 256 levels"],
  ])("%s is refused", (_, body, cause) => {
    expect(failure(body)).toMatchObject({ code: 400, message: expect.stringContaining(cause) });
  });

  test("of random bytes is read or refused, never more", () => {
    const random = randomNumbers(11);
    for (const { protobuf } of full) {
      for (let round = 0; round < 20; round++) {
        const bytes = Buffer.from(protobuf, "base64");
        for (let flips = 0; flips < 3; flips++) {
          bytes[20 + Math.floor(random() * (bytes.length - 20))] = Math.floor(random() * 256);
        }
        const error = failure(bytes.subarray(0, 20 + Math.floor(random() * bytes.length)));
        if (error !== undefined) expect(error).toBeInstanceOf(StatusError);
      }
    }
  });
});

test("writing a value of a wrong type names the value", () => {
  const pod = { apiVersion: "v1", kind: "Pod", spec: { containers: [{ name: 7 }] } };
  expect(() => encodeProtobuf(pod)).toThrow(
    "writing core/v1.Container in protobuf: name is of type number, not always string",
  );
});

function failure(body: Uint8Array): unknown {
  try {
    decodeProtobuf(body);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Hexadecimal of a field that holds a message, of one that holds text, and of a whole body. */
function message(number: number, content: string): string {
  return varint(number * 8 + 2) + varint(content.length / 2) + content;
}

function text(number: number, content: string): string {
  return message(number, Buffer.from(content).toString("hex"));
}

function bodyOf(type: string, raw: string): Buffer {
  return Buffer.from(`6b387300${message(1, type)}${message(2, raw)}`, "hex");
}

function varint(value: number): string {
  const byte = (value % 128) + (value >= 128 ? 128 : 0);
  return byte.toString(16).padStart(2, "0") + (value >= 128 ? varint(value >> 7) : "");
}

function deepDefinition(depth: number): Buffer {
  let schema = "";
  for (let level = 0; level < depth; level++) schema = message(28, schema);
  const version = message(7, message(4, message(1, schema)));
  return bodyOf(
    text(1, "apiextensions.k8s.io/v1") + text(2, "CustomResourceDefinition"),
    message(2, version),
  );
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

/** JSON of Go has null where lists and times have nothing; the server drops it from what it is sent. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutNulls);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== null)
      .map(([key, each]) => [key, withoutNulls(each)]),
  );
}

/** A copy that lacks about every third field. */
function thinned(value: unknown, random: () => number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => thinned(each, random));
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key === "apiVersion" || key === "kind" || random() < 0.67)
      .map(([key, each]) => [key, thinned(each, random)]),
  );
}

function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
