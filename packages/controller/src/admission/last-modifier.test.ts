/** Who changed a Function, as admission records it. */
import { annotations, type Function } from "@spry/function";
import { describe, expect, test } from "vitest";
import { functionOf } from "../testing/objects.ts";
import { type AdmissionRequest } from "@spry/kube";
import { lastModifierPatch } from "./last-modifier.ts";

const key = annotations.lastModifier;
const path = "/metadata/annotations/serverless.kyma-project.io~1last-modifier";
const code = (source: string) => ({ runtime: "nodejs24", source: { inline: { source } } });

function fn(spec: object, changes?: Record<string, string>): Function {
  const object = functionOf(spec);
  return changes ? { ...object, metadata: { ...object.metadata, annotations: changes } } : object;
}

function patch(object: Function, oldObject?: Function, username: string | undefined = "ann") {
  const operation = oldObject ? "UPDATE" : "CREATE";
  return lastModifierPatch(
    { operation, oldObject, userInfo: { username } } as AdmissionRequest,
    object,
  );
}

describe("the annotation is set", () => {
  test.each<[string, Function, Function | undefined, unknown]>([
    [
      "by a creation",
      fn(code("a")),
      undefined,
      { op: "add", path: "/metadata/annotations", value: { [key]: "ann" } },
    ],
    ["next to others", fn(code("a"), { a: "b" }), undefined, { op: "add", path, value: "ann" }],
    [
      "whatever a creation says of it",
      fn(code("a"), { [key]: "eve" }),
      undefined,
      { op: "replace", path, value: "ann" },
    ],
    [
      "by another spec",
      fn(code("b"), { [key]: "bob" }),
      fn(code("a"), { [key]: "bob" }),
      { op: "replace", path, value: "ann" },
    ],
    [
      "by a demand for a build",
      fn(code("a"), { [annotations.rebuild]: "1", [key]: "bob" }),
      fn(code("a"), { [key]: "bob" }),
      { op: "replace", path, value: "ann" },
    ],
  ])("%s", (_, object, old, operation) => expect(patch(object, old)).toEqual([operation]));

  test("to a name of bounded length without control characters", () => {
    const [operation] = patch(fn(code("a"), { a: "b" }), undefined, `a\nb${"x".repeat(1000)}`);
    expect(operation).toMatchObject({ value: expect.stringMatching(/^a\?bx{250}$/) });
  });
});

describe("the annotation stays what is stored", () => {
  test.each([null, {}])("when server-side apply leaves %j of the annotations", (left) => {
    const applied = fn(code("a"));
    Object.assign(applied.metadata, { annotations: left });
    expect(patch(applied, fn(code("a"), { [key]: "bob" }))).toEqual([
      { op: "add", path: "/metadata/annotations", value: { [key]: "bob" } },
    ]);
  });

  const stored = fn(code("a"), { [key]: "bob" });
  test.each<[string, Function, Function, unknown[]]>([
    ["when the same manifest is applied", stored, stored, []],
    [
      "when it is left out, as a replacement does",
      fn(code("a")),
      stored,
      [{ op: "add", path: "/metadata/annotations", value: { [key]: "bob" } }],
    ],
    [
      "when a manifest brings an old one",
      fn(code("a"), { [key]: "old" }),
      stored,
      [{ op: "replace", path, value: "bob" }],
    ],
    [
      "when a request claims another user",
      fn(code("a"), { [key]: "eve" }),
      fn(code("a")),
      [{ op: "remove", path }],
    ],
    ["when only replicas change", fn({ ...code("a"), replicas: 3 }, { [key]: "bob" }), stored, []],
    [
      "when a default is left out",
      fn({ source: { inline: { source: "a" } } }, { [key]: "bob" }),
      stored,
      [],
    ],
  ])("%s", (_, object, old, operations) => expect(patch(object, old)).toEqual(operations));
});

test.each([["a text"], [["a list"]]])("annotations that are %j are left to the schema", (value) => {
  expect(patch(fn(code("a"), value as never))).toEqual([]);
});

test("a request without a user sets nothing", () => {
  expect(lastModifierPatch({ operation: "CREATE" } as AdmissionRequest, fn(code("a")))).toEqual([]);
});
